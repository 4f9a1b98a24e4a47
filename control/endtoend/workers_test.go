package endtoend

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestWorkersComeAndGo: workers without data, in processes of their own, make all mini-batches of a job. One worker is
// killed while it makes splits, one is drained, and one joins in the middle. Every mini-batch comes once, and is that
// of one machine.
func TestWorkersComeAndGo(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	want := onOneMachine(t, data, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	runNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)))
	hire := func(name string) *process {
		c := workerConfig(name, []string{s.URL()})
		return start(t, role{Worker: &c})
	}
	killed := hire("w0")
	hire("w1")
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	awaitReady(t, c, "w0", "w1")
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Placement: "pool"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 40_000, Deadline: 2 * time.Second})
	require.NoError(t, err)
	got := newResult()
	for mb, err := range j.MiniBatches(ctx) {
		require.NoError(t, err)
		got.add(t, mb)
		switch len(got.sums) {
		case 10:
			killed.kill()
		case 25:
			hire("w2")
			awaitReady(t, c, "w2")
			_, err := c.Drain(ctx, "w1", true)
			require.NoError(t, err)
		}
	}
	require.NoError(t, j.Close())
	check(t, want, got, false)
	st = awaitDone(t, c, st.Id)
	assert.Zero(t, st.SplitsHeld)
	assert.Positive(t, st.SplitsAny)
}

// liar is a proxy before a worker that changes the mini-batches that the worker sends.
func liar(t *testing.T, to string, change func(*http.Response) error) string {
	target, err := url.Parse(to)
	require.NoError(t, err)
	back := httputil.NewSingleHostReverseProxy(target)
	back.ErrorLog = log.New(io.Discard, "", 0)
	back.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Request.URL.Path, apiv1.MiniBatchPath) {
			return nil
		}
		return change(r)
	}
	s := httptest.NewServer(back)
	t.Cleanup(s.Close)
	return s.URL
}

// flippedBit flips one bit of a body.
type flippedBit struct {
	io.ReadCloser
	at int
}

func (f *flippedBit) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.at >= 0 && f.at < n {
		p[f.at] ^= 1
	}
	f.at -= n
	return n, err
}

// TestAWorkerThatLies: the mini-batches of a worker are damaged, are not the requested ones, never come, or break off.
// Launchers notice it by a frame's checksum and name. The lease comes back, and another worker makes the split.
func TestAWorkerThatLies(t *testing.T) {
	data := files(t, 700, 401)
	want := onOneMachine(t, data, 1)
	for name, change := range map[string]func(*http.Response) error{
		"a bit flips": func(r *http.Response) error {
			r.Body = &flippedBit{r.Body, int(r.ContentLength) - 10}
			return nil
		},
		"another mini-batch": func(r *http.Response) error {
			q := r.Request.URL.Query()
			q.Set("number", "0")
			if r.Request.URL.Query().Get("number") == "0" {
				q.Set("number", "1")
			}
			q.Del("until")
			other := *r.Request.URL
			q.Set("until", "2")
			other.RawQuery = q.Encode()
			again, err := http.NewRequest(http.MethodGet, other.String(), nil)
			if err != nil {
				return err
			}
			again.Header = r.Request.Header.Clone()
			resp, err := http.DefaultClient.Do(again)
			if err != nil {
				return err
			}
			err = r.Body.Close()
			*r = *resp
			return err
		},
		"it hangs": func(r *http.Response) error {
			<-r.Request.Context().Done()
			return r.Request.Context().Err()
		},
		"it breaks off": func(*http.Response) error { return errors.New("gone") },
	} {
		t.Run(name, func(t *testing.T) {
			s := startControl(t, controlOptions(t.TempDir()))
			runNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)))
			asked, once := make(chan struct{}), sync.Once{}
			crooked := workerConfig("w0", []string{s.URL()})
			crooked.Listen = []string{freePorts(t, 1)[0]}
			crooked.Advertise = []string{liar(t, "http://"+crooked.Listen[0], func(r *http.Response) error {
				once.Do(func() { close(asked) })
				return change(r)
			})}
			w0 := startWorker(t, crooked)
			defer func() { assert.NoError(t, w0.Close()) }()
			c := dial(t, s.URL())
			awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
			awaitReady(t, c, "w0")
			st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Placement: "pool"})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 40_000, Deadline: time.Second})
			require.NoError(t, err)
			honest := make(chan error, 1) // an honest worker comes when the crooked one has lied
			go func() {
				select {
				case <-asked:
				case <-ctx.Done():
					honest <- context.Cause(ctx)
					return
				}
				w1, err := worker.Start(ctx, workerConfig("w1", []string{s.URL()}), worker.Options{Logger: logger()})
				if err == nil {
					<-ctx.Done()
					err = w1.Close()
				}
				honest <- err
			}()
			defer func() {
				cancel()
				assert.NoError(t, <-honest)
			}()
			got := newResult()
			for mb, err := range j.MiniBatches(ctx) {
				require.NoError(t, err)
				got.add(t, mb)
			}
			require.NoError(t, j.Close())
			check(t, want, got, false)
			list, err := c.Nodes(ctx)
			require.NoError(t, err)
			for _, n := range list {
				if n.GetStatus().GetName() == "w0" {
					require.NotEmpty(t, n.Troubles, "the worker is reported")
					assert.Positive(t, n.Troubles[0].Failures)
				}
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}
