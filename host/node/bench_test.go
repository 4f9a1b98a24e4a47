package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// endless gives the same tensors under every number, so that nothing but the way to the client is measured.
type endless struct {
	like   *tensor.MiniBatch
	order  api.SplitRequest
	number uint64
	end    uint64
}

func (e *endless) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if e.number == e.end {
		return nil, io.EOF
	}
	m := tensor.New(e.like.Schema, e.like.Rows, nil)
	m.Label, m.Dense, m.Values64, m.Lengths = e.like.Label, e.like.Dense, e.like.Values64, e.like.Lengths
	m.Name = tensor.Name{Job: e.order.Job, Epoch: e.order.Epoch, Number: e.number}
	e.number++
	return m, nil
}

func (e *endless) Close() error { return nil }

// cpu is the processor time of this process, both ends of the connection.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs f, which moves n bytes, and reports CPU seconds a GB.
func measure(b *testing.B, n int64, f func()) {
	b.SetBytes(n / int64(b.N))
	b.ResetTimer()
	before := cpu()
	f()
	used := cpu() - before
	b.StopTimer()
	b.ReportMetric(used.Seconds()/(float64(n)/1e9), "cpu-s/GB")
	b.ReportMetric(float64(n)/1e9/b.Elapsed().Seconds(), "GB/s")
}

// BenchmarkMiniBatches measures GETs of mini-batches of 4 MiB, four outstanding, beside the same bytes through a bare
// connection, client and server in this process:
//
//	go test -run xxx -bench MiniBatches -benchtime 2s ./host/node
func BenchmarkMiniBatches(b *testing.B) {
	s := &tensor.Schema{Label: true, IDs: tensor.Int64}
	for i := range 13 {
		s.Dense = append(s.Dense, fmt.Sprintf("int_%d", i))
	}
	for i := range 26 {
		s.Keys = append(s.Keys, tensor.Key{Name: fmt.Sprintf("cat_%d", i), NumEmbeddings: 1 << 20, List: true})
	}
	const rows = 8192
	like, err := tensor.Make(s, rows, rows*len(s.Keys))
	require.NoError(b, err)
	for i := range like.Lengths {
		like.Lengths[i] = 1
	}
	frame, err := tensor.EncodeFrame(like)
	require.NoError(b, err)
	size := frame.Len()
	socket := "unix:" + filepath.Join(b.TempDir(), "n.sock")
	for _, network := range []string{"unix", "tcp"} {
		b.Run("raw/"+network, func(b *testing.B) { benchRaw(b, network, size) })
		b.Run("get/"+network, func(b *testing.B) {
			c := DefaultConfig()
			c.Name, c.Listen = "n0", []string{map[string]string{"unix": socket, "tcp": "127.0.0.1:0"}[network]}
			c.Drives = []DriveConfig{{Name: "d0",
				URI: fill(b, "mem", map[string][]byte{"a.parquet": nodetest.Partition(b, 1, 2000)})}}
			f := startWith(b, c, Options{wrap: func(splits.Opener) splits.Opener {
				return func(_ context.Context, o api.SplitRequest) (api.Stream, error) {
					return &endless{like: like, order: o, number: o.Split.FirstFragment + uint64(o.From),
						end: o.Split.FirstFragment + uint64(o.Split.Fragments)}, nil
				}
			}})
			j := f.prepare(dataset.Options{Batch: 1, SplitBatches: 1000})
			benchGets(b, f, j, size)
		})
	}
}

// benchGets fetches b.N mini-batches, four requests at a time, into fixed buffers.
func benchGets(b *testing.B, f *fixture, j *nodetest.Job, size int64) {
	const outstanding = 4
	total := j.Plan.MiniBatches()
	numbers := make(chan uint64)
	measure(b, int64(b.N)*size, func() {
		var wg sync.WaitGroup
		for range outstanding {
			wg.Add(1)
			go func() {
				defer wg.Done()
				buf := make([]byte, size+4096)
				for n := range numbers {
					resp, err := f.client.Get(f.link(j, "d0", n, min(n+2*outstanding, total)))
					if err != nil {
						b.Error(err)
						continue
					}
					if _, err = io.ReadFull(resp.Body, buf[:resp.ContentLength]); err != nil ||
						resp.StatusCode != http.StatusOK {
						b.Error(resp.Status, err)
					}
					_ = resp.Body.Close()
				}
			}()
		}
		for i := range b.N {
			numbers <- uint64(i) % total
		}
		close(numbers)
		wg.Wait()
	})
}

// benchRaw writes the same bytes to a connection and reads them from its other end.
func benchRaw(b *testing.B, network string, size int64) {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(b.TempDir(), "raw.sock")
	}
	l, err := net.Listen(network, addr)
	require.NoError(b, err)
	defer l.Close()
	sent := make(chan error, 1)
	measure(b, int64(b.N)*size, func() {
		go func() {
			c, err := l.Accept()
			if err == nil {
				buf := make([]byte, size)
				for i := 0; i < b.N && err == nil; i++ {
					_, err = c.Write(buf)
				}
				_ = c.Close()
			}
			sent <- err
		}()
		c, err := net.Dial(network, l.Addr().String())
		require.NoError(b, err)
		buf := make([]byte, size)
		for range b.N {
			_, err := io.ReadFull(c, buf)
			require.NoError(b, err)
		}
		require.NoError(b, <-sent)
		require.NoError(b, c.Close())
	})
}
