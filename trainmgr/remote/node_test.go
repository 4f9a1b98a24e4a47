package remote

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestANodeThatMisbehaves: one of two nodes sends wrong answers of every kind, and every mini-batch still comes once
// and intact.
func TestANodeThatMisbehaves(t *testing.T) {
	other := func(number uint64) []byte {
		b, err := tensor.AppendFrame(nil, makeBatch(tensor.Name{Number: number}, 10))
		require.NoError(t, err)
		return b
	}
	ofRows := func(r *http.Request, number uint64, rows int) []byte {
		name := tensor.Name{Job: [32]byte(mustHex(r.URL.Query().Get("job"))), Number: number}
		b, err := tensor.AppendFrame(nil, makeBatch(name, rows))
		assert.NoError(t, err)
		return b
	}
	label := tensor.New(&tensor.Schema{Label: true}, 10, nil)
	label.Label = make([]float32, 10)
	for name, serve := range map[string]func(n uint64, w http.ResponseWriter, r *http.Request, frame []byte) bool{
		"a byte of the tensors is wrong": func(_ uint64, w http.ResponseWriter, _ *http.Request, frame []byte) bool {
			frame[len(frame)-3] ^= 4
			send(w, frame)
			return true
		},
		"it sends another job's": func(n uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			send(w, other(n))
			return true
		},
		"it sends another shape": func(n uint64, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			mb := label.Clone()
			mb.Name = tensor.Name{Job: [32]byte(mustHex(r.URL.Query().Get("job"))), Number: n}
			b, _ := tensor.AppendFrame(nil, mb)
			send(w, b)
			return true
		},
		"it leaves a row out": func(n uint64, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			send(w, ofRows(r, n, 9))
			return true
		},
		"it adds a row": func(n uint64, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			send(w, ofRows(r, n, 11))
			return true
		},
		"it sends a byte now and then": func(_ uint64, w http.ResponseWriter, r *http.Request, frame []byte) bool {
			w.Header().Set("Content-Type", apiv1.FrameType)
			w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
			for i := range frame {
				_, _ = w.Write(frame[i : i+1])
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return true
				case <-time.After(5 * time.Millisecond):
				}
			}
			return true
		},
		"it hangs up in the middle": func(_ uint64, w http.ResponseWriter, _ *http.Request, frame []byte) bool {
			w.Header().Set("Content-Type", apiv1.FrameType)
			w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
			_, _ = w.Write(frame[:len(frame)/2])
			panic(http.ErrAbortHandler)
		},
		"it hangs up at once": func(uint64, http.ResponseWriter, *http.Request,
			[]byte) bool {
			panic(http.ErrAbortHandler)
		},
		"it says no length": func(_ uint64, w http.ResponseWriter, _ *http.Request, frame []byte) bool {
			w.Header().Set("Content-Type", apiv1.FrameType)
			_, _ = w.Write(frame[:10])
			w.(http.Flusher).Flush()
			_, _ = w.Write(frame[10:])
			return true
		},
		"it promises too much": func(_ uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header().Set("Content-Type", apiv1.FrameType)
			w.Header().Set("Content-Length", strconv.Itoa(maxFrame+1))
			return true
		},
		"it sends another type": func(_ uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			_, _ = io.WriteString(w, "<html>proxy</html>")
			return true
		},
		"it does not know the job": func(_ uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			refuse(w, http.StatusNotFound, "not_found", "no such job: prepare it first")
			return true
		},
		"it fails without words": func(_ uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		},
		"it sends somewhere else": func(_ uint64, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Redirect(w, r, "/", http.StatusFound)
			return true
		},
		"it does not answer": func(_ uint64, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, clusterOptions{rows: 80, batch: 10, split: 4, nodes: 2})
			c.nodes[0].do(serve)
			j := c.attach(t, c.dial(t), AttachOptions{Deadline: 100 * time.Millisecond})
			// The fake leader hands what came back to the nodes in turn, so the good one gets everything at last.
			got := take(t, c, j, -1, nil)
			require.NoError(t, got.err)
			require.Equal(t, all(0, 8), sorted(got.numbers))
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.Contains(t, strings.Join(r.Notes, "\n"), "given back because their node failed")
			require.NoError(t, j.Close())
			c.mu.Lock()
			defer c.mu.Unlock()
			node := 0
			for _, why := range c.reasons {
				if strings.HasPrefix(why, "node: node n0") {
					node++
				}
			}
			assert.Positive(t, node, "reasons: %q", c.reasons)
		})
	}
}

func mustHex(s string) []byte {
	b := make([]byte, len(s)/2)
	for i := range b {
		v, err := strconv.ParseUint(s[2*i:2*i+2], 16, 8)
		if err != nil {
			panic(err)
		}
		b[i] = byte(v)
	}
	return b
}

// TestAPassingFaultIsTriedAgain on the same node: the lease stays.
func TestAPassingFaultIsTriedAgain(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter, frame []byte){
		"corrupt": func(w http.ResponseWriter, frame []byte) {
			frame[len(frame)-1] ^= 1
			send(w, frame)
		},
		"hangs up": func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
		"busy": func(w http.ResponseWriter, _ []byte) {
			refuse(w, http.StatusTooManyRequests, "resource_exhausted", "all streams are taken")
		},
		"busy for a second": func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "unavailable", "the image is being loaded")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, clusterOptions{rows: 300, batch: 10, split: 4})
			var once atomic.Bool
			c.nodes[0].do(func(n uint64, w http.ResponseWriter, _ *http.Request, frame []byte) bool {
				if n != 17 || once.Swap(true) {
					return false
				}
				fault(w, frame)
				return true
			})
			j := c.attach(t, c.dial(t), AttachOptions{})
			got := take(t, c, j, -1, nil)
			require.NoError(t, got.err)
			require.Equal(t, all(0, 30), sorted(got.numbers))
			require.NoError(t, j.Close())
			for _, why := range c.reasons {
				assert.NotContains(t, why, "node", "nothing was given back")
			}
		})
	}
}

// TestDataThatIsAtFaultEndsTheJob, with the fault's place in the error, and the control plane learns of it.
func TestDataThatIsAtFaultEndsTheJob(t *testing.T) {
	for code, status := range map[string]int{"data_loss": http.StatusInternalServerError,
		"failed_precondition": http.StatusBadRequest} {
		c := newCluster(t, clusterOptions{rows: 300, batch: 10, split: 4, nodes: 2, order: "deterministic"})
		for _, node := range c.nodes {
			node.do(func(n uint64, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
				if n == 13 {
					refuse(w, status, code, "part-0: row group 2, column cat_0, page 1: checksum")
				}
				return n == 13
			})
		}
		j := c.attach(t, c.dial(t), AttachOptions{refused: 200 * time.Millisecond})
		got := take(t, c, j, -1, nil)
		require.ErrorIs(t, got.err, ErrData)
		assert.ErrorContains(t, got.err, "row group 2, column cat_0")
		assert.ErrorContains(t, got.err, "drive d 0: split ")
		assert.LessOrEqual(t, len(got.numbers), 13)
		require.NoError(t, j.Close())
		told := 0
		for _, why := range c.reasons {
			if strings.HasPrefix(why, "data: ") && strings.Contains(why, "page 1") {
				told++
			}
		}
		assert.Equal(t, 1, told, "reasons: %q", c.reasons)
	}
}

// TestANodeThatDies: its delivered mini-batches are kept, the rest comes from the other node, and no mini-batch that
// came is asked for again.
func TestANodeThatDies(t *testing.T) {
	for _, order := range []string{"fastest", "deterministic"} {
		t.Run(order, func(t *testing.T) {
			c := newCluster(t, clusterOptions{rows: 2000, batch: 10, split: 16, nodes: 2, order: order})
			j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 20_000})
			n := 0
			got := take(t, c, j, -1, func(*tensor.MiniBatch) {
				if n++; n == 20 {
					c.nodes[0].kill()
				}
			})
			require.NoError(t, got.err)
			require.Len(t, got.numbers, 200)
			if order == "deterministic" {
				require.Equal(t, all(0, 200), got.numbers)
			}
			require.NoError(t, j.Close())
			twice := 0
			for number, k := range c.nodes[1].served {
				twice += k + c.nodes[0].served[number] - 1
			}
			assert.LessOrEqual(t, twice, DefaultCredits*8, "only what was under way is asked for again")
		})
	}
}

// TestANodeThatHangsIsRevoked: long before the deadline of a request, the control plane knows.
func TestANodeThatHangsIsRevoked(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 500, batch: 10, split: 8, nodes: 2, order: "deterministic"})
	hang := make(chan struct{})
	defer close(hang)
	c.nodes[0].do(func(n uint64, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if n < 20 {
			return false
		}
		c.nodes[0].mu.Lock()
		c.nodes[0].gone = true
		c.nodes[0].mu.Unlock()
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return true
	})
	j := c.attach(t, c.dial(t), AttachOptions{Deadline: time.Hour})
	got := take(t, c, j, -1, nil)
	require.NoError(t, got.err)
	require.Equal(t, all(0, 50), got.numbers)
	require.NoError(t, j.Close())
}

// TestTheSocketOfThisMachineIsPreferred, if the node that is meant answers there.
func TestTheSocketOfThisMachineIsPreferred(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 200, batch: 10, split: 4, unix: true})
	run := func() {
		j := c.attach(t, c.dial(t), AttachOptions{})
		require.NoError(t, take(t, c, j, -1, nil).err)
		require.NoError(t, j.Close())
	}
	run()
	require.Equal(t, 20, c.nodes[0].unix)
	for name, socket := range map[string]string{
		"another node's": newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1, unix: true,
			nodes: 2}).nodes[1].urls[1],
		"nobody's":  "unix:" + filepath.Join(t.TempDir(), "none"),
		"no socket": "unix:" + os.Args[0],
	} {
		c.set(func() { c.enter(0, 0) })
		c.nodes[0].urls[1] = socket
		run()
		require.Equal(t, 20, c.nodes[0].unix, name)
	}
	c.set(func() { c.enter(0, 0) })
	c.nodes[0].urls = []string{c.nodes[0].urls[1]}
	time.AfterFunc(50*time.Millisecond, func() {
		c.set(func() {
			c.nodes[0].urls = []string{"ftp://x",
				"http://" + c.nodes[0].addr}
		})
	})
	run()
}

// TestAnAddressThatFailsIsLeft for the node's next one.
func TestAnAddressThatFailsIsLeft(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 200, batch: 10, split: 4})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	c.nodes[0].urls = []string{dead, c.nodes[0].urls[0]}
	j := c.attach(t, c.dial(t), AttachOptions{})
	require.Len(t, take(t, c, j, -1, nil).numbers, 20)
	require.NoError(t, j.Close())
	assert.NotContains(t, fmt.Sprint(c.reasons), "node")
}

// TestNoMemoryIsAllocatedForTensors once the buffers are there.
func TestNoMemoryIsAllocatedForTensors(t *testing.T) {
	const rows = 20_000
	name := tensor.Name{Job: [32]byte{1}}
	frame, err := tensor.AppendFrame(nil, makeBatch(name, rows))
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { send(w, frame) })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = srv.Serve(l) }()
	defer func() { _ = srv.Close() }()
	n := &node{name: "n", http: http.DefaultClient}
	pool := newBuffers(64 << 20)
	get := func() {
		q := &batchRequest{name: name, number: name.Number, rows: rows, until: name.Number + 1}
		mb, err := n.fetchFrame(t.Context(), "http://"+l.Addr().String(), q, pool, testSchema)
		require.NoError(t, err)
		mb.Release()
	}
	get()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const turns = 20
	for range turns {
		get()
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/turns, uint64(len(frame)/4), "bytes a mini-batch of %d",
		len(frame))
}

func TestBuffersAreAlignedAndBounded(t *testing.T) {
	p := newBuffers(10_000)
	for _, n := range []int{0, 1, 63, 4096, 4097, 5000, 1 << 20, 1<<20 + 1, 3<<20 - 7} {
		b := p.get(n)
		require.Len(t, b, n)
		require.LessOrEqual(t, cap(b), max(4096, n+n/8+1), "%d", n)
		v := tensor.View[int64](b[:n/8*8])
		if n >= 8 { // a view of memory, not a copy of it
			v[0] = 77
			require.EqualValues(t, 77, b[0])
		}
	}
	a, b, c := p.get(4096), p.get(4096), p.get(4096)
	p.put(a)
	p.put(b)
	p.put(c) // beyond what is kept
	require.EqualValues(t, 8192, p.freeBytes)
	require.Same(t, &b[:1][0], &p.get(10)[:1][0])
}

// TestCredits checks that more small mini-batches than large mini-batches are requested at once, unless an option gives
// the number.
func TestCredits(t *testing.T) {
	for bytes, want := range map[int64]int{0: 4, 1: 4, 2 << 20: 4, 2<<20 + 1: 3, 3 << 20: 2, 4_300_000: 2, 1 << 31: 2} {
		require.Equal(t, want, creditsFor(AttachOptions{}, bytes), "%d bytes", bytes)
		require.Equal(t, 7, creditsFor(AttachOptions{Credits: 7}, bytes))
	}
}

// TestTheSumOfAFrame checks that the checksum of a frame is the same if it is computed while the frame arrives and if
// it is computed at the end, wherever the header ends.
func TestTheSumOfAFrame(t *testing.T) {
	for _, rows := range []int{1, 100, 9000, 40_000} {
		mb := makeBatch(tensor.Name{Number: 3}, rows)
		frame, err := tensor.AppendFrame(nil, mb)
		require.NoError(t, err)
		buf := make([]byte, len(frame))
		crc, err := readSummed(iotest.OneByteReader(bytes.NewReader(frame[:min(len(frame), 1<<16)])),
			buf[:min(len(frame), 1<<16)])
		require.NoError(t, err)
		if len(frame) > 1<<16 {
			crc, err = readSummed(bytes.NewReader(frame), buf)
			require.NoError(t, err)
		}
		got, err := tensor.ReadFrameOf(buf, crc, mb.Name, tensor.Fragment{}, mb.Schema)
		require.NoError(t, err)
		require.Empty(t, tensor.Diff(mb, got))
		_, err = tensor.ReadFrameOf(buf, crc+1, mb.Name, tensor.Fragment{}, mb.Schema)
		require.ErrorIs(t, err, tensor.ErrFrame)
	}
	for _, junk := range []string{"", "short", "\xff\xff\xff\xff\xff\xff\xff\xff, a header beyond all bounds",
		strings.Repeat("\x00", 300_000)} {
		_, err := readSummed(strings.NewReader(junk), make([]byte, len(junk)))
		require.NoError(t, err)
	}
	_, err := readSummed(strings.NewReader("cut"), make([]byte, 10))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
