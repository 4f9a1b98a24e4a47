package tensor

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// formMiniBatch is a small mini-batch with names that need escapes, a list and values at the ends of their range.
func formMiniBatch() *MiniBatch {
	m := New(&Schema{
		Label: true, Dense: []string{"int_0"}, IDs: Int64,
		Keys: []Key{{Name: "cat_\"0\\", NumEmbeddings: 500000}, {Name: "é\n", List: true}},
	}, 2, nil)
	m.Name = Name{Job: [32]byte{0xab, 31: 0xcd}, Epoch: 1, Number: math.MaxUint64}
	m.Label, m.Dense = []float32{0, 1}, []float32{0.5, float32(math.Inf(-1))}
	m.Values64, m.Lengths = []int64{7, 8, -1}, []int32{1, 1, 0, 1}
	return m
}

// TestFormOfAFrame holds a whole frame, padding included.
func TestFormOfAFrame(t *testing.T) {
	b, err := AppendFrame(nil, formMiniBatch())
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/frame.v1.hex", b)
	m, err := ReadFrame(goldenfile.Read(t, "testdata/frame.v1.hex"))
	require.NoError(t, err)
	assert.Empty(t, Diff(formMiniBatch(), m))
}

// TestFormOfAFolder holds every byte of the files that preprocess --format npy writes.
func TestFormOfAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tensors")
	m := formMiniBatch()
	w, err := CreateNpy(folder, m.Schema)
	require.NoError(t, err)
	require.NoError(t, w.Write(m))
	require.NoError(t, w.Close())
	goldenfile.Text(t, "testdata/npy.v1.txt", folderText(t, folder))
}

// folderText writes the files of a folder as text.
func folderText(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var all bytes.Buffer
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		all.WriteString(e.Name() + "\n")
		if filepath.Ext(e.Name()) == ".json" {
			all.Write(b)
			continue
		}
		all.WriteString(goldenfile.Hex(b))
	}
	return all.String()
}

// formBFloat16 is formMiniBatch with a dense tensor of bfloat16 of an odd number of elements.
func formBFloat16() *MiniBatch {
	m := formMiniBatch()
	s := *m.Schema
	s.Dense, s.DenseType = []string{"int_0", "int_1", "int_2"}, BFloat16
	b := New(&s, m.Rows, nil)
	b.Name, b.Label, b.Values64, b.Lengths = m.Name, m.Label, m.Values64, m.Lengths
	b.Dense16 = []uint16{0x3f80, 0xff80, 0x0001, 0x7fc0, 0x8000, 0x7f7f}
	return b
}

// TestFormOfABFloat16Frame holds a whole frame of version 2.
func TestFormOfABFloat16Frame(t *testing.T) {
	b, err := AppendFrame(nil, formBFloat16())
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/frame.v2.hex", b)
	m, err := ReadFrame(goldenfile.Read(t, "testdata/frame.v2.hex"))
	require.NoError(t, err)
	assert.Empty(t, Diff(formBFloat16(), m))
	assert.Contains(t, string(b), `"dense":{"dtype":"BF16","shape":[2,3],"data_offsets":[48,60]}}`)
}
