package reducer

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
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
	at, err := o.Plan.MiniBatch(number)
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

// TestAPassThatGoesOnAnywhere: a reducer that takes over the states of the partitions behind any mini-batch makes the
// bytes of one that never stopped.
func TestAPassThatGoesOnAnywhere(t *testing.T) {
	o := options(t, 250, 100, 330)
	whole, err := New(o)
	require.NoError(t, err)
	var ended [][]byte // states of the partitions that have ended
	var want []byte
	restored := []*Reducer{}
	for number := range o.Plan.MiniBatches() {
		at, err := o.Plan.MiniBatch(number)
		require.NoError(t, err)
		for whole.Partition() < at.Partition {
			state, err := whole.State()
			require.NoError(t, err)
			ended = append(ended, state)
			require.NoError(t, whole.EndPartitions(whole.Partition()+1))
		}
		require.NoError(t, add(t, whole, o, number))
		open, err := whole.State()
		require.NoError(t, err)
		position, err := Describe(open)
		require.NoError(t, err)
		assert.Equal(t, Position{Job: o.Job, Partition: at.Partition, Rows: at.First + int64(at.Rows), Next: number + 1},
			position)
		r, err := New(o)
		require.NoError(t, err)
		for i, state := range ended {
			require.NoError(t, r.SetState(state))
			require.NoError(t, r.EndPartitions(i+1))
		}
		require.NoError(t, r.SetState(open))
		require.Equal(t, number+1, r.Next())
		restored = append(restored, r)
	}
	want = finished(t, whole)
	for _, r := range restored {
		for number := r.Next(); number < o.Plan.MiniBatches(); number++ {
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
	require.Error(t, r.Add(dataset.MiniBatch{Number: 1, First: 100, Rows: 100}, large))
	require.NoError(t, r.EndPartitions(1))
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

// someState returns the state of a pass's first mini-batches.
func someState(t testing.TB, o Options, miniBatches uint64) []byte {
	t.Helper()
	r, err := New(o)
	require.NoError(t, err)
	for number := range miniBatches {
		require.NoError(t, add(t, r, o, number))
	}
	state, err := r.State()
	require.NoError(t, err)
	return state
}

// sealed gives changed bytes the checksum that they need.
func sealed(state []byte) []byte {
	body := state[:len(state)-checksumBytes]
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32c.Checksum(body))
}

func TestStatesThatAreNotOfThePass(t *testing.T) {
	o := options(t, 250, 100)
	state := someState(t, o, 2)
	restore := func(o Options, state []byte) error {
		r, err := New(o)
		require.NoError(t, err)
		return r.SetState(state)
	}
	require.NoError(t, restore(o, state))
	other := o
	other.Job[0]++
	require.ErrorIs(t, restore(other, state), ErrState)
	other = options(t, 110, 240) // its second mini-batch is of 10 rows
	require.NoError(t, restore(other, someState(t, other, 1)))
	fewer := o
	fewer.Columns = o.Columns[:1]
	require.ErrorIs(t, restore(fewer, state), ErrState)
	for n := 0; n < len(state); n += 7 {
		require.ErrorIs(t, restore(o, state[:n]), ErrState, "%d bytes", n)
		flipped := bytes.Clone(state)
		flipped[n] ^= 4
		require.ErrorIs(t, restore(o, flipped), ErrState, "byte %d", n)
	}
	require.ErrorIs(t, restore(o, sealed(append(bytes.Clone(state), 0))), ErrState)
	at := len(stateMagic) + len(o.Job)
	for name, change := range map[string]func(b []byte){
		"of another partition":          func(b []byte) { b[at] = 1 },
		"of other rows":                 func(b []byte) { b[at+1]++ },
		"a next mini-batch behind it":   func(b []byte) { b[at+3] = 4 },
		"a next mini-batch of no plan":  func(b []byte) { b[at+3] = 9 },
		"columns that are longer":       func(b []byte) { b[at+4] = 0xff },
		"a magic of another form":       func(b []byte) { b[7] = 1 },
		"partition beyond the manifest": func(b []byte) { b[at] = 99 },
	} {
		changed := bytes.Clone(state)
		change(changed)
		require.ErrorIs(t, restore(o, sealed(changed)), ErrState, name)
	}
	r, err := New(o)
	require.NoError(t, err)
	require.NoError(t, r.SetState(state))
	require.ErrorIs(t, r.SetState(state), ErrState, "rows were folded in before")
}

// FuzzState: bytes with any content behind a right checksum are a state or an error, and never a panic.
func FuzzState(f *testing.F) {
	o := options(f, 250, 100)
	f.Add(someState(f, o, 0))
	f.Add(someState(f, o, 2))
	f.Fuzz(func(t *testing.T, state []byte) {
		if len(state) < checksumBytes {
			return
		}
		state = sealed(state)
		r, err := New(o)
		require.NoError(t, err)
		if err := r.SetState(state); err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		for number := r.Next(); number < o.Plan.MiniBatches(); number++ {
			if add(t, r, o, number) != nil {
				return
			}
		}
		if made, err := r.Finish(); err == nil {
			_, _ = made.Encode() // values that contradict each other are an error of the file
		}
	})
}
