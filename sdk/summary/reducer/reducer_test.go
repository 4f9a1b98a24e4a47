package reducer

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestSizesThatNoFileHolds(t *testing.T) {
	require.ErrorContains(t, CheckSize(summary.MaxCells/8+1, 8, false), "leave the partitions out")
	require.NoError(t, CheckSize(summary.MaxCells/8, 8, false))
	require.NoError(t, CheckSize(summary.MaxCells, 8, true))
}

// schema of the mini-batches of the tests: a number, and a key whose labels are counted by folds.
var schema = &tensor.Schema{Label: true, Dense: []string{"x"}, IDs: tensor.Int64, Keys: []tensor.Key{{Name: "k"}}}

// options returns a pass over partitions of some rows, in mini-batches of 100.
func options(t testing.TB, rows ...int64) Options {
	t.Helper()
	m := &dataset.Manifest{}
	for i, n := range rows {
		m.Partitions = append(m.Partitions, dataset.Partition{Name: string(rune('a' + i)), Bytes: 1 << 20, Rows: n,
			RowGroups: []int64{n}})
	}
	plan, err := dataset.NewPlan(m, dataset.Options{Batch: 100, Shuffle: dataset.ShuffleNone})
	require.NoError(t, err)
	return Options{Job: dataset.Digest{1}, Manifest: m, Plan: plan, Columns: []statisticspass.Column{
		{Name: "x", Type: "float32", Kind: summary.Reals, Dense: 0, Key: -1},
		{Name: "k", Type: "int64", Kind: summary.Integers, Dense: -1, Key: 0,
			Folding: &targetencoding.Folding{Folds: 3, Seed: 7}},
	}}
}

// miniBatch returns a mini-batch of a pass.
func miniBatch(t testing.TB, o Options, number uint64) *tensor.MiniBatch {
	t.Helper()
	at, err := o.Plan.MiniBatch(number)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(number, 1))
	mb := tensor.New(schema, at.Rows, nil)
	mb.Name.Number = number
	for range at.Rows {
		mb.Label = append(mb.Label, float32(rng.IntN(2)))
		mb.Dense = append(mb.Dense, rng.Float32())
		mb.Values64 = append(mb.Values64, rng.Int64N(50))
	}
	return mb
}

// add folds a mini-batch of a pass in.
func add(t testing.TB, r *Reducer, o Options, number uint64) error {
	t.Helper()
	at, err := o.Plan.Fragment(number)
	require.NoError(t, err)
	return r.Add(at, miniBatch(t, o, number))
}

// finished makes the summary's file.
func finished(t testing.TB, r *Reducer) []byte {
	t.Helper()
	made, err := r.Finish()
	require.NoError(t, err)
	b, err := made.Encode()
	require.NoError(t, err)
	return b
}

// TestAPassThatGoesOnAnywhere: a reducer that takes over the parts behind any mini-batch makes the bytes of one that
// never stopped.
func TestAPassThatGoesOnAnywhere(t *testing.T) {
	o := options(t, 250, 0, 100, 330)
	never, err := New(o)
	require.NoError(t, err)
	whole, err := New(o)
	require.NoError(t, err)
	require.NoError(t, whole.Restore(nil, nil))
	var parts []string
	restored := map[uint64]*Reducer{} // by the number of the next mini-batch
	for number := range o.Plan.MiniBatches() {
		require.NoError(t, add(t, never, o, number))
		require.NoError(t, add(t, whole, o, number))
		path := filepath.Join(t.TempDir(), "part")
		replaces, err := whole.Keep(path)
		require.NoError(t, err)
		if replaces {
			parts = parts[:len(parts)-1]
		}
		parts = append(parts, path)
		r, err := New(o)
		require.NoError(t, err)
		require.NoError(t, r.Restore(parts, []dataset.Range{{To: number + 1}}))
		restored[number+1] = r
	}
	require.Len(t, parts, 4, "of the first partition, of those up to the third, of the third and fourth, of the fourth")
	want := finished(t, never)
	assert.Equal(t, want, finished(t, whole))
	for next, r := range restored {
		for number := next; number < o.Plan.MiniBatches(); number++ {
			require.NoError(t, add(t, r, o, number))
		}
		assert.Equal(t, want, finished(t, r))
	}
}

// TestMiniBatchesOutOfOrder: the fold depends on the order, so another one is an error.
func TestMiniBatchesOutOfOrder(t *testing.T) {
	o := options(t, 250, 100)
	r, err := New(o)
	require.NoError(t, err)
	require.Error(t, add(t, r, o, 1))
	require.NoError(t, add(t, r, o, 0))
	require.Error(t, add(t, r, o, 0))
	large := miniBatch(t, o, 1)
	large.Rows++
	require.Error(t, r.Add(dataset.Fragment{Number: 1, First: 100, Rows: 100}, large))
	require.NoError(t, r.endPartitions(1))
	require.ErrorContains(t, add(t, r, o, 1), "has ended")
}

func TestTargetsNeedTheRowsNumbers(t *testing.T) {
	o := options(t, 100)
	o.Malformed = program.MalformedDrop
	_, err := New(o)
	require.ErrorIs(t, err, problem.ErrDroppedRows)
	o.Columns = o.Columns[:1]
	_, err = New(o)
	require.NoError(t, err)
}

// somePart returns a part with a pass's first mini-batches.
func somePart(t testing.TB, o Options, miniBatches uint64) []byte {
	t.Helper()
	r, err := New(o)
	require.NoError(t, err)
	require.NoError(t, r.Restore(nil, nil))
	for number := range miniBatches {
		require.NoError(t, add(t, r, o, number))
	}
	path := filepath.Join(t.TempDir(), "part")
	_, err = r.Keep(path)
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// restoreBytes restores a part of some mini-batches.
func restoreBytes(t testing.TB, o Options, part []byte, miniBatches uint64) error {
	t.Helper()
	r, err := New(o)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(path, part, 0o600))
	return r.Restore([]string{path}, []dataset.Range{{To: miniBatches}})
}

// sealed gives changed bytes the checksum that they need.
func sealed(part []byte) []byte {
	body := part[:len(part)-checksumBytes]
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32c.Checksum(body))
}

func TestPartsThatAreNotOfThePass(t *testing.T) {
	o := options(t, 250, 100)
	part := somePart(t, o, 2)
	require.NoError(t, restoreBytes(t, o, part, 2))
	require.ErrorIs(t, restoreBytes(t, o, part, 0), ErrState)
	require.ErrorIs(t, restoreBytes(t, o, part, 1), ErrState, "it has more rows")
	require.ErrorIs(t, restoreBytes(t, o, part, 4), ErrState, "of the next partition")
	require.ErrorIs(t, restoreBytes(t, o, part, 9), ErrState, "of no plan")
	other := o
	other.Job[0]++
	require.ErrorIs(t, restoreBytes(t, other, part, 2), ErrState)
	fewer := o
	fewer.Columns = o.Columns[:1]
	require.ErrorIs(t, restoreBytes(t, fewer, part, 2), ErrState)
	for n := 0; n < len(part); n += 7 {
		require.ErrorIs(t, restoreBytes(t, o, part[:n], 2), ErrState, "%d bytes", n)
		flipped := bytes.Clone(part)
		flipped[n] ^= 4
		require.ErrorIs(t, restoreBytes(t, o, flipped, 2), ErrState, "byte %d", n)
	}
	require.ErrorIs(t, restoreBytes(t, o, sealed(append(bytes.Clone(part), 0)), 2), ErrState)
	at := len(partMagic) + len(o.Job)
	for name, change := range map[string]func(b []byte){
		"of another partition":          func(b []byte) { b[at] = 1 },
		"of other rows":                 func(b []byte) { b[at+1]++ },
		"columns that are longer":       func(b []byte) { b[at+3] = 0xff },
		"a magic of another form":       func(b []byte) { b[7] = 1 },
		"partition beyond the manifest": func(b []byte) { b[at] = 99 },
	} {
		changed := bytes.Clone(part)
		change(changed)
		require.ErrorIs(t, restoreBytes(t, o, sealed(changed), 2), ErrState, name)
	}
}

// FuzzPart: bytes with any content behind a right checksum are a part or an error, and never a panic.
func FuzzPart(f *testing.F) {
	o := options(f, 250, 100)
	f.Add(somePart(f, o, 0))
	f.Add(somePart(f, o, 2))
	f.Fuzz(func(t *testing.T, part []byte) {
		if len(part) < checksumBytes {
			return
		}
		r, err := New(o)
		require.NoError(t, err)
		last, err := r.restorePart(sealed(part), nil)
		if err == nil {
			err = r.restoreState(last)
		}
		if err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		if r.endPartitions(len(o.Manifest.Partitions)) != nil {
			return
		}
		if made, err := r.Finish(); err == nil {
			_, _ = made.Encode() // values that contradict each other are an error of the file
		}
	})
}
