package arrowipc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/sdk/tensor"
)

func schemas() map[string]*tensor.Schema {
	fixed := []tensor.Key{{Name: "cat_0", NumEmbeddings: 5}, {Name: "<é>"}}
	lists := []tensor.Key{{Name: "cat_0", NumEmbeddings: 5, List: true}, {Name: "b"}}
	return map[string]*tensor.Schema{
		"fixed int32":    {Label: true, Dense: []string{"x", "y"}, Keys: fixed, IDs: tensor.Int32},
		"fixed int64":    {Label: true, Dense: []string{"x"}, Keys: fixed, IDs: tensor.Int64},
		"lists int64":    {Label: true, Dense: []string{"x"}, Keys: lists, IDs: tensor.Int64},
		"lists weighted": {Keys: lists, IDs: tensor.Int32, Weights: true},
		"label only":     {Label: true},
		"bfloat16":       {Dense: []string{"x"}, DenseType: tensor.BFloat16, Keys: lists, IDs: tensor.Int32},
	}
}

// batch returns a valid mini-batch with rows of varied content.
func batch(t testing.TB, s *tensor.Schema, rows int, number uint64) *tensor.MiniBatch {
	t.Helper()
	values := len(s.Keys) * rows
	lengths := make([]int32, values)
	if !s.Fixed() {
		values = 0
		for i := range lengths {
			lengths[i] = 1
			if s.Keys[i/rows].List {
				lengths[i] = int32((uint64(i) + number) % 3)
			}
			values += int(lengths[i])
		}
	}
	m, err := tensor.Make(s, rows, values)
	require.NoError(t, err)
	m.Name = tensor.Name{Job: [32]byte{0xab}, Epoch: 4, Number: number}
	copy(m.Lengths, lengths)
	for i := range m.Dense {
		m.Dense[i] = math.Float32frombits(0x7fc00001 + uint32(i)) // NaNs keep their bits
	}
	for i := range m.Dense16 {
		m.Dense16[i] = uint16(0x7fc1 + i)
	}
	for i := range m.Label {
		m.Label[i] = float32(i % 2)
	}
	for i := range m.Values32 {
		m.Values32[i] = int32(i % 5)
	}
	for i := range m.Values64 {
		m.Values64[i] = int64(i % 5)
	}
	for i := range m.Weights {
		m.Weights[i] = float32(i)
	}
	return m
}

func write(t testing.TB, s *tensor.Schema, batches ...*tensor.MiniBatch) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, s)
	require.NoError(t, err)
	for _, m := range batches {
		require.NoError(t, w.Write(m))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// read returns the mini-batches of a file as arrow-go sees them. The schema is that of the writer.
func read(t testing.TB, s *tensor.Schema, b []byte) (batches []*tensor.MiniBatch) {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Close()
	for i := range r.NumRecords() {
		rec, err := r.RecordBatchAt(i)
		require.NoError(t, err)
		batches = append(batches, miniBatch(t, s, rec))
		rec.Release()
	}
	return batches
}

// miniBatch makes a mini-batch of a record batch.
func miniBatch(t testing.TB, s *tensor.Schema, rec arrow.RecordBatch) *tensor.MiniBatch {
	t.Helper()
	require.EqualValues(t, 1, rec.NumRows())
	meta := rec.(arrow.RecordBatchWithMetadata).Metadata().ToMap()
	rows, err := strconv.Atoi(meta[metaRows])
	require.NoError(t, err)
	m := tensor.New(s, rows, nil)
	m.Name, err = tensor.ParseName(meta[metaName])
	require.NoError(t, err)
	for i, f := range rec.Schema().Fields() {
		assert.False(t, f.Nullable, f.Name)
		list := rec.Column(i).(*array.LargeList)
		lo, hi := list.ValueOffsets(0)
		switch v := list.ListValues().(type) {
		case *array.Float32:
			*map[string]*[]float32{tensor.TensorDense: &m.Dense, tensor.TensorLabel: &m.Label,
				tensor.TensorWeights: &m.Weights}[f.Name] = slices.Clone(v.Float32Values()[lo:hi])
		case *array.Int32:
			*map[string]*[]int32{tensor.TensorLengths: &m.Lengths,
				tensor.TensorValues: &m.Values32}[f.Name] = slices.Clone(v.Int32Values()[lo:hi])
		case *array.Int64:
			m.Values64 = slices.Clone(v.Int64Values()[lo:hi])
		case *array.Uint16:
			m.Dense16 = slices.Clone(v.Uint16Values()[lo:hi])
		}
	}
	require.NoError(t, m.Validate())
	return m
}

// TestBuffersAreAligned checks that a program that maps a file finds every tensor at a multiple of 64 bytes.
func TestBuffersAreAligned(t *testing.T) {
	s := schemas()["lists weighted"]
	m := batch(t, s, 7, 1)
	b := write(t, s, batch(t, s, 5, 0), m)
	for _, tensorBytes := range [][]byte{tensor.Bytes(m.Values32), tensor.Bytes(m.Lengths), tensor.Bytes(m.Weights)} {
		at := bytes.LastIndex(b, tensorBytes)
		require.Positive(t, at)
		assert.Zero(t, at%64)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, s := range schemas() {
		for _, sizes := range [][]int{{}, {0}, {5}, {100, 100, 37}} {
			t.Run(fmt.Sprint(name, sizes), func(t *testing.T) {
				var want []*tensor.MiniBatch
				for i, rows := range sizes {
					want = append(want, batch(t, s, rows, uint64(i)))
				}
				path := filepath.Join(t.TempDir(), "out.arrow")
				w, err := Create(path, s)
				require.NoError(t, err)
				for _, m := range want {
					require.NoError(t, w.Write(m))
				}
				require.NoFileExists(t, path, "the name is for whole files")
				require.NoError(t, w.Close())
				require.NoError(t, w.Abort(), "nothing to do")

				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, b, write(t, s, want...), "the same mini-batches give the same bytes")
				got := read(t, s, b)
				require.Len(t, got, len(want))
				for i, m := range got {
					assert.Empty(t, tensor.Diff(want[i], m))
				}
			})
		}
	}
}

// TestFileAsArrowSeesIt checks the content that other Arrow readers see.
func TestFileAsArrowSeesIt(t *testing.T) {
	s := schemas()["lists int64"]
	b := write(t, s, batch(t, s, 3, 0), batch(t, s, 2, 1))
	r, err := ipc.NewFileReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 2, r.NumRecords())
	var fields []string
	for _, f := range r.Schema().Fields() {
		fields = append(fields, fmt.Sprint(f.Name, " ", f.Type))
	}
	assert.Equal(t, []string{
		"dense large_list<item: float32>", "label large_list<item: float32>", "kjt.values large_list<item: int64>",
		"kjt.lengths large_list<item: int32>",
	}, fields)
	assert.Equal(t, map[string]string{
		"millrace.format": "millrace.arrow/1", "millrace.shapes": `{"dense":1,"keys":2}`, "millrace.dense": `["x"]`,
		"millrace.keys": `["cat_0","b"]`, "millrace.num_embeddings": "[5,0]", "millrace.list": "[true,false]",
	}, r.Schema().Metadata().ToMap())
	rec, err := r.RecordBatchAt(1)
	require.NoError(t, err)
	defer rec.Release()
	assert.EqualValues(t, 1, rec.NumRows())
	assert.Equal(t, map[string]string{
		"millrace.name": "ab" + strings.Repeat("00", 31) + "/4/1", "millrace.rows": "2",
	}, rec.(arrow.RecordBatchWithMetadata).Metadata().ToMap())
	assert.Equal(t, "[0 1]", rec.Column(1).(*array.LargeList).ListValues().String())
	assert.Equal(t, "[1 2 1 1]", rec.Column(3).(*array.LargeList).ListValues().String())

	fixed := write(t, schemas()["fixed int32"])
	rd, err := ipc.NewFileReader(bytes.NewReader(fixed))
	require.NoError(t, err)
	ones, _ := rd.Schema().Metadata().GetValue("millrace.lengths")
	assert.Equal(t, "ones", ones)
	assert.Equal(t, 3, rd.Schema().NumFields())
}

// TestDeduplicatedIsWrittenWhole checks that a file holds every row: a deduplicated mini-batch gives the same file
// as the mini-batch before its deduplication.
func TestDeduplicatedIsWrittenWhole(t *testing.T) {
	s := schemas()["lists int64"]
	sets := *s
	sets.Keys = append([]tensor.Key(nil), s.Keys...)
	sets.Keys[0].Set = 1
	m := batch(t, &sets, 6, 1)
	d, err := batch(t, &sets, 6, 1).Deduplicate()
	require.NoError(t, err)
	require.Less(t, d.Unique[0], int32(6))
	assert.Equal(t, write(t, &sets, m), write(t, &sets, d))
	assert.Equal(t, write(t, s, batch(t, s, 6, 1)), write(t, &sets, d))
}

func TestWriteRefuses(t *testing.T) {
	s := schemas()["fixed int32"]
	_, err := NewWriter(&bytes.Buffer{}, &tensor.Schema{})
	require.ErrorIs(t, err, tensor.ErrShape)
	w, err := NewWriter(&bytes.Buffer{}, s)
	require.NoError(t, err)
	require.ErrorIs(t, w.Write(batch(t, schemas()["label only"], 3, 0)), tensor.ErrShape)
	require.ErrorIs(t, w.Write(batch(t, s, 3, 0)), tensor.ErrShape, "a hole must not be filled")
	require.ErrorIs(t, w.Close(), tensor.ErrShape)

	w, err = NewWriter(&bytes.Buffer{}, s)
	require.NoError(t, err)
	bad := batch(t, s, 3, 0)
	bad.Rows++
	require.ErrorIs(t, w.Write(bad), tensor.ErrShape)

	w, err = NewWriter(&bytes.Buffer{}, s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Write(batch(t, s, 3, 0)), fs.ErrClosed)
}

func TestCreateRefusesAndAborts(t *testing.T) {
	s := schemas()["fixed int32"]
	dir := t.TempDir()
	path := filepath.Join(dir, "a.arrow")
	w, err := Create(path, s)
	require.NoError(t, err)
	require.NoError(t, w.Write(batch(t, s, 3, 0)))
	require.NoError(t, w.Abort())
	require.NoError(t, w.Abort())
	require.Error(t, w.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)

	w, err = Create(path, s)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(path, 0o700), "somebody else takes the name")
	require.Error(t, w.Close())
	require.FileExists(t, path+".partial")
	require.NoError(t, w.Abort())
	require.NoFileExists(t, path+".partial")
	require.NoError(t, os.Remove(path))

	w, err = Create(path, s)
	require.NoError(t, err)
	_, err = Create(path, s)
	require.ErrorIs(t, err, filelock.ErrLocked, "two writers would write the same file")
	require.ErrorContains(t, err, path)
	require.NoError(t, w.Close())
	_, err = Create(path, s)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = Create(filepath.Join(dir, "none", "a"), s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Create(filepath.Join(dir, "b"), &tensor.Schema{})
	require.ErrorIs(t, err, tensor.ErrShape)
	require.NoFileExists(t, filepath.Join(dir, "b.partial"))
	require.NoFileExists(t, filepath.Join(dir, "b.partial.lock"))
}

type failing struct{ room int }

var errDisk = errors.New("disk")

func (f *failing) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestWriteErrorsCarryOn(t *testing.T) {
	s := schemas()["fixed int32"]
	whole := len(write(t, s, batch(t, s, 50, 0), batch(t, s, 50, 1)))
	failed := 0
	for room := 0; room < whole; room += 100 {
		w, err := NewWriter(&failing{room}, s)
		if err == nil {
			_ = w.Write(batch(t, s, 50, 0))
			_ = w.Write(batch(t, s, 50, 1))
			err = w.Close()
		}
		require.ErrorIs(t, err, errDisk, "room for %d bytes of %d", room, whole)
		failed++
	}
	assert.Greater(t, failed, 5)
}

func Example() {
	s := &tensor.Schema{Label: true, Keys: []tensor.Key{{Name: "cat_0", NumEmbeddings: 10}}, IDs: tensor.Int32}
	m, _ := tensor.Make(s, 2, 2)
	copy(m.Values32, []int32{7, 8})
	var file bytes.Buffer
	w, _ := NewWriter(&file, s)
	_ = w.Write(m)
	_ = w.Close()

	r, _ := ipc.NewFileReader(bytes.NewReader(file.Bytes()))
	rec, _ := r.RecordBatchAt(0)
	fmt.Println(r.Schema().Field(1).Name, rec.Column(1))
	// Output: kjt.values [[7 8]]
}
