package host

import (
	"bytes"
	"errors"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// listRow is a row whose list may be long.
type listRow struct {
	Label int32   `parquet:"label"`
	List  []int64 `parquet:"list,list"`
}

const growingDoc = "name: p\nbatch: 10\nlabel: {column: label}\nsparse:\n  - columns: [list]\n"

// growingLists makes a partition of 200 rows; the lists of the last half are 400 times as long as the others.
func growingLists(t testing.TB) []byte {
	all := make([]listRow, 200)
	for i := range all {
		n := 2
		if i >= len(all)/2 {
			n = 800
		}
		for k := range n {
			all[i].List = append(all[i].List, int64(i*1000+k))
		}
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[listRow](&b, pq.MaxRowsPerRowGroup(100), pq.PageBufferSize(1<<10))
	_, err := w.Write(all)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// framesOf returns the frames of a drive's mini-batches, in order, and the error that ended them, if one did.
func framesOf(t testing.TB, paths []string, o DriveOptions) (frames [][]byte, err error) {
	d, err := OpenFiles(t.Context(), source.ParseLocations(paths...), o)
	require.NoError(t, err)
	m := openManager(t, d)
	spec, err := pipeline.Parse([]byte(growingDoc))
	require.NoError(t, err)
	data, err := m.Dataset(t.Context())
	require.NoError(t, err)
	plan, err := dataset.NewPlan(data.Manifest, dataset.Options{Batch: 10, SplitBatches: 20})
	require.NoError(t, err)
	j := &api.Job{Digest: dataset.Digest{1}, Pipeline: spec, Plan: plan.Options()}
	require.NoError(t, m.Prepare(t.Context(), j))
	for range 2 { // the second stream finds the memory that the first left
		for split := range plan.All() {
			s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: d.Name(), Split: split})
			require.NoError(t, err)
			for {
				mb, err := s.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return frames, errors.Join(err, s.Close())
				}
				frame, err := tensor.AppendFrame(nil, mb)
				require.NoError(t, err)
				mb.Release()
				frames = append(frames, frame)
			}
			require.NoError(t, s.Close())
		}
	}
	return frames, nil
}

// TestAStreamGoesOnInTheRestOfItsMemory checks that a stream whose mini-batches grow beyond the memory that it uses at
// first makes the same mini-batches in the rest of its part, and that without a rest the same memory is too small.
func TestAStreamGoesOnInTheRestOfItsMemory(t *testing.T) {
	paths := write(t, map[string][]byte{"a.parquet": growingLists(t)})
	want, err := framesOf(t, paths, DriveOptions{Engine: EngineReference})
	require.NoError(t, err)
	require.Len(t, want, 40)
	const first = 96 << 10
	few, err := framesOf(t, paths, DriveOptions{SLM: first, Streams: 1})
	var short *slicer.MemoryError
	require.ErrorAs(t, err, &short)
	require.NotEmpty(t, few, "the first mini-batches fit")
	assert.Equal(t, want[:len(few)], few)
	for _, o := range []DriveOptions{
		{SLM: 8 << 20, StreamMemory: first, Streams: 1},
		{SLM: 8 << 20, StreamMemory: first, Streams: 3},
		{SLM: 8 << 20, StreamMemory: first, Streams: 1, Commands: "standard"},
		{SLM: 8 << 20, StreamMemory: 8 << 20, Streams: 1}, // more than half: all of it
	} {
		got, err := framesOf(t, paths, o)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%+v", o)
	}
	_, err = framesOf(t, paths, DriveOptions{SLM: 2*first + 64<<10, StreamMemory: first, Streams: 1})
	require.ErrorAs(t, err, &short, "the rest is too small as well")
	for tries := 0; err != nil && tries < 10; tries++ { // each error names the memory for its page
		require.ErrorAs(t, err, &short)
		require.Greater(t, short.Need, short.Have)
		_, err = framesOf(t, paths, DriveOptions{SLM: (short.Need + 4095) &^ 4095, StreamMemory: first, Streams: 1})
	}
	require.NoError(t, err, "the memory that the errors name suffices")
}
