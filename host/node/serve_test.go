package node

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/tensor/arrowipc"
)

// content is a data set of three partitions.
func content(t testing.TB) map[string][]byte {
	return map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 1030), "b.parquet": nodetest.Partition(t, 2, 400),
		"c.parquet": nodetest.Partition(t, 3, 75)}
}

// TestTheWireGivesWhatTheProcessDoes checks that every mini-batch of every kind of drive, over TCP and a unix socket,
// with and without mixed rows, is byte for byte that of the reference engine in this process.
func TestTheWireGivesWhatTheProcessDoes(t *testing.T) {
	files := content(t)
	mem, file := fill(t, "mem", files), fill(t, "file", files)
	wire := serveDrive(t, fill(t, "file", files))
	for _, c := range []struct {
		listen string
		o      dataset.Options
	}{
		{"127.0.0.1:0", dataset.Options{SplitBatches: 5, Seed: 9}},
		{"unix:" + filepath.Join(t.TempDir(), "n.sock"),
			dataset.Options{Shuffle: dataset.ShuffleRows, SplitBatches: 4, Window: 3, Epoch: 2}},
	} {
		f := start(t, func(g *Config) {
			g.Listen = []string{c.listen}
			g.Drives = append(g.Drives, DriveConfig{Name: "cpu", URI: mem, Engine: "cpu"})
		}, mem, file, wire.uri())
		j := f.prepare(c.o)
		want := truth(t, files, j)
		for _, drive := range []string{"d0", "d1", "d2", "cpu"} {
			got := f.epoch(j, drive)
			require.Len(t, got, len(want))
			for i := range want {
				require.True(t, bytes.Equal(want[i], got[i]), "%s: mini-batch %d", drive, i)
			}
		}
		f.wait("runs to end", func() bool { return f.splits.Running("") == 0 })
		assert.Zero(t, f.splits.Holding())
		require.NoError(t, f.Close(), "the drives are free again for the next")
	}
}

// TestAskingAgainGivesTheSame asks for mini-batches forwards, backwards, and for the same one many times at once.
func TestAskingAgainGivesTheSame(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 100})
	want := truth(t, files, j)
	n := uint64(len(want))
	for _, number := range []uint64{0, 0, 1, 5, 3, 20, 19, 19, 2, n - 1, 0, n - 1} {
		assert.True(t, bytes.Equal(want[number], f.frame(j, "d0", number, number+4)), "mini-batch %d", number)
	}
	var wg sync.WaitGroup
	for i := range uint64(24) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			number := i % 6
			status, b, _, err := f.try(t.Context(), f.link(j, "d0", number, 10))
			if assert.NoError(t, err) && assert.Equal(t, http.StatusOK, status, "%s", b) {
				assert.True(t, bytes.Equal(want[number], b), "mini-batch %d", number)
			}
		}()
	}
	wg.Wait()
}

// TestSeveralClients checks that clients with many outstanding requests, one client for a drive and a split, get every
// mini-batch once, and that the node holds nothing afterwards.
func TestSeveralClients(t *testing.T) {
	files := content(t)
	f := start(t, func(c *Config) { c.Buffers = BufferConfig{Node: 40 << 10, Job: 30 << 10} }, fill(t, "mem", files),
		fill(t, "file", files))
	j := f.prepare(dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	splits := make(chan dataset.Split, j.Plan.Splits())
	for s := range j.Plan.All() {
		splits <- s
	}
	close(splits)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[uint64]int{}
	for client := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for s := range splits {
				var credits sync.WaitGroup
				for i := range uint64(s.Fragments) {
					credits.Add(1)
					go func() {
						defer credits.Done()
						n := s.FirstFragment + i
						status, b, _, err := f.try(t.Context(),
							f.link(j, fmt.Sprintf("d%d", client), n, s.FirstFragment+uint64(s.Fragments)))
						if assert.NoError(t, err) && assert.Equal(t, http.StatusOK, status, "%s", b) {
							assert.True(t, bytes.Equal(want[n], b))
							mu.Lock()
							got[n]++
							mu.Unlock()
						}
					}()
				}
				credits.Wait()
			}
		}()
	}
	wg.Wait()
	assert.Len(t, got, len(want))
	f.wait("runs to end", func() bool { return f.splits.Running("") == 0 })
	assert.Zero(t, f.splits.Holding())
}

func TestArrowOnAccept(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files))
	j := f.prepare(dataset.Options{})
	want, err := tensor.ReadFrame(f.frame(j, "d0", 2, 3))
	require.NoError(t, err)
	status, b, h := f.get(f.link(j, "d0", 2, 3), "Accept", apiv1.ArrowType)
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, apiv1.ArrowType, h.Get("Content-Type"))
	file := &bytes.Buffer{}
	w, err := arrowipc.NewWriter(file, want.Schema)
	require.NoError(t, err)
	require.NoError(t, w.Write(want))
	require.NoError(t, w.Close())
	assert.Equal(t, file.Bytes(), b)
}

// TestMadeAheadUpToUntil checks that mini-batches up to until are made without being asked for, and no more.
func TestMadeAheadUpToUntil(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files))
	j := f.prepare(dataset.Options{SplitBatches: 12, Shuffle: dataset.ShuffleNone})
	s, err := j.Plan.Split(0)
	require.NoError(t, err)
	require.Equal(t, 12, s.Fragments, "of the partition that has as many")
	f.frame(j, "d0", s.FirstFragment, s.FirstFragment+6)
	f.wait("five to be made ahead", func() bool { return f.splits.Holding().Fragments == 5 })
	// Two more splits want a stream, and the drive has two: the first split, which has nothing to make, gives its own
	// up.
	f.frame(j, "d0", s.FirstFragment+12, s.FirstFragment+13)
	f.frame(j, "d0", s.FirstFragment+24, s.FirstFragment+25)
	for i := range uint64(12) {
		f.frame(j, "d0", s.FirstFragment+i, s.FirstFragment+12)
	}
	r, err := f.node.Describe(t.Context(), &apiv1.DescribeRequest{})
	require.NoError(t, err)
	assert.Equal(t, f.splits.Holding().Fragments, r.Status.BufferedBatches)
}
