package remote

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/tensor"
)

// Bounds of what a node may answer.
const (
	maxFrame     = 2 << 30  // bytes of a mini-batch
	maxErrorBody = 64 << 10 // bytes of an error's JSON
	// maxDescription is what a node with a million partitions says of itself.
	maxDescription = 256 << 20
)

// errNode says that a node did not do what it should; somebody else, or the same later, may.
var errNode = errors.New("node")

// errRefused says that a node does not have what it should, or not any more: its partition has changed, or was moved.
var errRefused = errors.New("refused")

// busyError is a node's word that it would do so later.
type busyError struct {
	err   error
	after time.Duration
}

func (e *busyError) Error() string { return e.err.Error() }
func (e *busyError) Unwrap() error { return e.err }

// node is one storage node as a job knows it.
type node struct {
	name string
	http *http.Client

	mu    sync.Mutex
	bases []string // where it is reached, nearest first, those that failed last
	known []string // the URLs that bases were made of
	fails int      // in a row
	until time.Time
}

// reach notes where the node is. Sockets of this machine come first, if the node of this name answers there: another machine's
// may have the same path.
func (n *node) reach(ctx context.Context, urls []string) error {
	n.mu.Lock()
	same := slices.Equal(n.known, urls)
	n.mu.Unlock()
	if same {
		return nil
	}
	var near, far []string
	for _, raw := range urls {
		base, err := identity.BaseURL(raw)
		if err != nil {
			continue
		}
		path, unix := strings.CutPrefix(raw, "unix:")
		if !unix {
			far = append(far, base)
			continue
		}
		if fi, err := os.Stat(path); err == nil && fi.Mode().Type() == os.ModeSocket && n.answers(ctx, base) {
			near = append(near, base)
		}
	}
	if len(near)+len(far) == 0 {
		return fmt.Errorf("%w %s: it cannot be reached at any of %q", errNode, n.name, urls)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bases, n.known = append(near, far...), slices.Clone(urls)
	return nil
}

// answers asks who is there.
func (n *node) answers(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := apiv1connect.NewNodeClient(n.http, base, connect.WithReadMaxBytes(maxDescription)).Describe(ctx, &apiv1.DescribeRequest{})
	return err == nil && resp.GetStatus().GetName() == n.name
}

// base returns where to ask now.
func (n *node) base() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bases[0]
}

// avoid puts an address that failed behind the others.
func (n *node) avoid(base string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.bases, base); i >= 0 {
		n.bases = append(slices.Delete(n.bases, i, i+1), base)
	}
}

// went notes how a piece went. After a failure the next pieces of this node wait a little, longer each time: the leader
// may hand them to us at once.
func (n *node) went(ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ok {
		n.fails, n.until = 0, time.Time{}
		return
	}
	now := time.Now()
	if now.Before(n.until) {
		return // of the same failure, as several pieces see it
	}
	n.fails++
	n.until = now.Add(50 * time.Millisecond << min(n.fails-1, 6))
}

// pause waits out what went noted.
func (n *node) pause(ctx context.Context) error {
	n.mu.Lock()
	wait := time.Until(n.until)
	n.mu.Unlock()
	return sleep(ctx, wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask is what a mini-batch is asked for with.
type ask struct {
	job           [32]byte
	epoch, number uint64
	until         uint64
	drive         string
	ticket        *string // nil: none
}

func (a *ask) query() string {
	b := make([]byte, 0, 256)
	b = append(b, apiv1.MiniBatchPath+"?job="...)
	b = hex.AppendEncode(b, a.job[:])
	b = strconv.AppendUint(append(b, "&epoch="...), a.epoch, 10)
	b = append(append(b, "&drive="...), url.QueryEscape(a.drive)...)
	b = strconv.AppendUint(append(b, "&number="...), a.number, 10)
	b = strconv.AppendUint(append(b, "&until="...), a.until, 10)
	return string(b)
}

// get fetches one mini-batch, which lends a buffer of the pool until it is released. The error wraps ErrData where asking
// again would not help, errRefused where only another node could, a busyError where it would help later, errNode else.
func (n *node) get(ctx context.Context, base string, a *ask, pool *buffers, schema *tensor.Schema) (*tensor.MiniBatch, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+a.query(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	if a.ticket != nil {
		req.Header.Set(apiv1.TicketHeader, *a.ticket)
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, n.refusal(resp)
	}
	if t := resp.Header.Get("Content-Type"); t != apiv1.FrameType {
		return nil, fmt.Errorf("%w %s: an answer of type %q, want %s", errNode, n.name, t, apiv1.FrameType)
	}
	if resp.ContentLength < 0 || resp.ContentLength > maxFrame {
		return nil, fmt.Errorf("%w %s: an answer of %d bytes, want a length up to %d", errNode, n.name, resp.ContentLength, int64(maxFrame))
	}
	buf, crc, err := pool.readFrame(resp.Body, int(resp.ContentLength))
	if err != nil {
		return nil, fmt.Errorf("%w %s: the answer was cut: %w", errNode, n.name, err)
	}
	mb, err := n.check(buf, crc, a, schema, pool)
	if err != nil {
		pool.put(buf)
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	return mb, nil
}

// check makes a mini-batch of a frame, if it is the one that was asked for.
func (n *node) check(buf []byte, crc uint32, a *ask, schema *tensor.Schema, pool *buffers) (*tensor.MiniBatch, error) {
	want := tensor.Name{Job: a.job, Epoch: a.epoch, Number: a.number}
	got, err := tensor.ReadFrameOf(buf, crc, want, schema)
	if err != nil {
		return nil, err
	}
	mb := tensor.New(schema, got.Rows, func() { pool.put(buf) })
	mb.Name = got.Name
	mb.Label, mb.Dense, mb.Lengths, mb.Weights = got.Label, got.Dense, got.Lengths, got.Weights
	mb.Values32, mb.Values64 = got.Values32, got.Values64
	return mb, nil
}

// refusal reads what a node says instead of a mini-batch.
func (n *node) refusal(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var body struct{ Code, Message string }
	if json.Unmarshal(raw, &body) != nil || body.Code == "" {
		return fmt.Errorf("%w %s: HTTP status %d: %.200q", errNode, n.name, resp.StatusCode, raw)
	}
	err := fmt.Errorf("%w %s: %s: %s", errNode, n.name, body.Code, body.Message)
	switch body.Code {
	case "data_loss":
		return fmt.Errorf("%w: node %s: %s", ErrData, n.name, body.Message)
	case "failed_precondition":
		return fmt.Errorf("%w: node %s: %s", errRefused, n.name, body.Message)
	case "resource_exhausted", "unavailable":
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &busyError{err, time.Duration(min(max(after, 0), 60)) * time.Second}
	}
	return err
}
