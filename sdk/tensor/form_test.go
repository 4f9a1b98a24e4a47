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

// TestFormOfAFrame holds a whole frame of every version, padding included.
func TestFormOfAFrame(t *testing.T) {
	sets := formOfSets(t)
	assert.Equal(t, []int32{2, 1}, sets.Unique)
	assert.Equal(t, []int32{0, 0, 1, 0, 0, 0}, sets.Inverse)
	for _, c := range []struct {
		name     string
		batch    *MiniBatch
		golden   string
		contains []string
	}{
		{"frame", formMiniBatch(), "testdata/frame.v1.hex", nil},
		{"bfloat16", formBFloat16(), "testdata/frame.v2.hex", []string{
			`"dense":{"dtype":"BF16","shape":[2,3],"data_offsets":[48,60]}}`,
		}},
		{"deduplicated", sets, "testdata/frame.v3.hex", []string{
			`"format":"millrace.frame/3"`, `"sets":"[1,1,0,2]","unique":"[2,1]","crc32c"`,
			`"kjt.inverse":{"dtype":"I32","shape":[2,3]`,
		}},
		{"fragment", formOfFragment(), "testdata/frame.v4.hex", []string{
			`"format":"millrace.frame/4"`, `/1/5","fragment":"1/4","shapes"`, `"sets":"[1,1,0,2]","crc32c"`,
			`"kjt.lengths":{"dtype":"I32","shape":[4,2]`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := AppendFrame(nil, c.batch)
			require.NoError(t, err)
			goldenfile.Bytes(t, c.golden, b)
			m, err := ReadFrame(goldenfile.Read(t, c.golden))
			require.NoError(t, err)
			assert.Empty(t, Diff(c.batch, m))
			for _, part := range c.contains {
				assert.Contains(t, string(b), part)
			}
		})
	}
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
