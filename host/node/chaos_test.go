package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/tensor"
)

// unlucky is a stream that fails now and then, in every way that there is.
type unlucky struct {
	api.Stream
	rng *lockedRand
}

type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) n(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

func (u *unlucky) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	switch u.rng.n(400) {
	case 0:
		return nil, errors.New("the wire broke")
	case 1:
		return nil, fmt.Errorf("page 3: %w", partition.ErrData)
	case 2:
		panic("a bug")
	}
	return u.Stream.Next(ctx)
}

// TestWhateverHappensTheBytesAreRight checks that an answer with status 200 is always the mini-batch that was asked
// for, while clients ask in any order and leave in the middle, jobs are finished and prepared again, and drives fail
// and are drained; and that the node holds nothing in the end.
func TestWhateverHappensTheBytesAreRight(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := &lockedRand{r: rand.New(rand.NewPCG(seed, 1))}
	files := content(t)
	c := DefaultConfig()
	c.Name, c.Listen = "n0", []string{"127.0.0.1:0"}
	c.Runs.Idle, c.Runs.Abandoned, c.Runs.BusyWait = Duration(200*time.Millisecond), Duration(50*time.Millisecond),
		Duration(50*time.Millisecond)
	c.Buffers = BufferConfig{Node: 30 << 10, Job: 20 << 10}
	c.Drives = []DriveConfig{{Name: "d0", URI: fill(t, "mem", files)},
		{Name: "d1", URI: fill(t, "file", files), Jobs: 3},
		{Name: "d2", URI: fill(t, "mem", files), Engine: "cpu", Threads: 2}}
	f := startWith(t, c, Options{Probe: 10 * time.Millisecond, wrap: func(open splits.Opener) splits.Opener {
		return func(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
			s, err := open(ctx, o)
			if err != nil {
				return nil, err
			}
			return &unlucky{s, rng}, nil
		}
	}})
	jobs := []*nodetest.Job{f.prepare(dataset.Options{SplitBatches: 5}),
		f.prepare(dataset.Options{Shuffle: dataset.ShuffleRows, SplitBatches: 7, Window: 3})}
	var want [][][]byte
	for _, j := range jobs {
		want = append(want, truth(t, files, j))
	}
	var wg sync.WaitGroup
	served := make([]int, 6)
	for client := range served {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 25 {
				i := rng.n(len(jobs))
				number := uint64(rng.n(len(want[i])))
				for k := range uint64(rng.n(5) + 1) {
					n := number + k
					if n >= uint64(len(want[i])) {
						break
					}
					ctx, cancel := context.WithCancel(context.Background())
					if rng.n(12) == 0 {
						time.AfterFunc(time.Duration(rng.n(3000))*time.Microsecond, cancel)
					}
					status, b, _, err := f.try(ctx,
						f.link(jobs[i], fmt.Sprintf("d%d", rng.n(3)), n, n+uint64(rng.n(9))+1))
					cancel()
					if err == nil && status == http.StatusOK {
						served[client]++
						assert.True(t, bytes.Equal(want[i][n], b), "job %d, mini-batch %d", i, n)
					}
				}
			}
		}()
	}
	stop := make(chan struct{})
	operator := make(chan struct{})
	go func() {
		defer close(operator)
		for {
			switch i := rng.n(len(jobs)); rng.n(4) {
			case 0:
				_, err := f.node.Finish(context.Background(), &apiv1.FinishRequest{Job: jobs[i].Digest[:]})
				assert.NoError(t, err)
				_, _ = f.node.Prepare(context.Background(), jobs[i].PrepareRequest) // a drive may be away
			case 1:
				_, err := f.node.Drain(context.Background(), &apiv1.DrainRequest{Drive: "d1", Drain: rng.n(2) == 0})
				assert.NoError(t, err)
			case 2:
				_, err := f.node.Rescan(context.Background(), &apiv1.RescanRequest{})
				assert.NoError(t, err)
			case 3:
				_, _ = f.node.Measure(context.Background(),
					&apiv1.MeasureRequest{Job: jobs[i].Digest[:], Drive: fmt.Sprintf("d%d", rng.n(3))})
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-operator
	f.client.CloseIdleConnections()
	f.wait("everything to be given back",
		func() bool { return f.splits.Running("") == 0 && f.splits.Holding() == splits.Held{} })
	for _, d := range f.manager.Drives() {
		f.wait("streams to be closed", func() bool { return d.Running() == 0 })
	}
	total := 0
	for _, n := range served {
		total += n
	}
	assert.Positive(t, total)
	t.Logf("%d mini-batches", total)
	require.NoError(t, f.Close())
}
