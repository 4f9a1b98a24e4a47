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
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Bounds of a node's answers.
const (
	maxFrame     = 2 << 30  // bytes of a mini-batch
	maxErrorBody = 64 << 10 // bytes of an error's JSON
	// maxDescription bounds the description of a node, in bytes: that of a node with a million partitions is as long.
	maxDescription = 256 << 20
)

// errNode says that a node failed. Another node may make the mini-batch, or the same node later.
var errNode = errors.New("node")

// errRefused says that a node does not hold a partition: the partition has changed or was moved.
var errRefused = errors.New("refused")

// busyError says that a node is busy and would answer later.
type busyError struct {
	err   error
	after time.Duration // the node's Retry-After
}

// Error implements error.
func (e *busyError) Error() string { return e.err.Error() }

// Unwrap returns the error without the time.
func (e *busyError) Unwrap() error { return e.err }

// node is one storage node as a job knows it.
type node struct {
	name string
	http *http.Client

	mu   sync.Mutex
	urls []string // at which the node was looked for last
}

// findAddresses returns where the node is reached, or nil if it was looked for at these URLs last. Unix sockets come
// first, if the node of this name answers there: a socket of another machine may have the same path as a socket of this
// one.
func (n *node) findAddresses(ctx context.Context, urls []string) ([]string, error) {
	n.mu.Lock()
	same := slices.Equal(n.urls, urls)
	n.mu.Unlock()
	if same {
		return nil, nil
	}
	var sockets, remote []string
	for _, raw := range urls {
		base, err := identity.BaseURL(raw)
		if err != nil {
			continue
		}
		path, unix := strings.CutPrefix(raw, "unix:")
		if !unix {
			remote = append(remote, base)
			continue
		}
		if fi, err := os.Stat(path); err == nil && fi.Mode().Type() == os.ModeSocket && n.answers(ctx, base) {
			sockets = append(sockets, base)
		}
	}
	if len(sockets)+len(remote) == 0 {
		return nil, fmt.Errorf("%w %s: it cannot be reached at any of %q", errNode, n.name, urls)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.urls = slices.Clone(urls)
	return append(sockets, remote...), nil
}

// answers reports whether the node of this name answers at a base URL.
func (n *node) answers(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := apiv1connect.NewNodeClient(n.http, base, connect.WithReadMaxBytes(maxDescription)).Describe(ctx,
		&apiv1.DescribeRequest{})
	return err == nil && resp.GetStatus().GetName() == n.name
}

// batchRequest holds the values of a request for a fragment.
type batchRequest struct {
	name     tensor.Name // It is that of the fragment's mini-batch.
	number   uint64      // The fragment has this number.
	rows     int         // rows is how many the plan gives the fragment.
	fragment tensor.Fragment
	until    uint64 // end of the piece's numbers
	drive    string
	ticket   *string // in base64; nil: none
}

// newBatchRequest returns the request for a fragment of a plan.
func newBatchRequest(job dataset.Digest, epoch uint64, plan *dataset.Plan, number uint64) (*batchRequest, error) {
	f, err := plan.Fragment(number)
	if err != nil {
		return nil, err
	}
	q := &batchRequest{
		name: tensor.Name{Job: job, Epoch: epoch, Number: f.MiniBatch}, number: number, rows: f.Rows,
	}
	q.fragment.Index, q.fragment.Of = plan.Place(f)
	return q, nil
}

// query returns the path and query of the request.
func (q *batchRequest) query() string {
	b := make([]byte, 0, 256)
	b = append(b, apiv1.MiniBatchPath+"?job="...)
	b = hex.AppendEncode(b, q.name.Job[:])
	b = strconv.AppendUint(append(b, "&epoch="...), q.name.Epoch, 10)
	b = append(append(b, "&drive="...), url.QueryEscape(q.drive)...)
	b = strconv.AppendUint(append(b, "&number="...), q.number, 10)
	b = strconv.AppendUint(append(b, "&until="...), q.until, 10)
	return string(b)
}

// fetchFrame fetches one fragment, which holds a buffer of the pool until it is released. The error wraps ErrData if
// to ask again would not help, errRefused if only another node could help, a busyError if the node could help later,
// and errNode otherwise.
func (n *node) fetchFrame(ctx context.Context, base string, q *batchRequest, pool *buffers,
	schema *tensor.Schema) (*tensor.MiniBatch, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+q.query(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	if q.ticket != nil {
		req.Header.Set(apiv1.TicketHeader, *q.ticket)
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, n.errorOf(resp)
	}
	if t := resp.Header.Get("Content-Type"); t != apiv1.FrameType {
		return nil, fmt.Errorf("%w %s: an answer of type %q, want %s", errNode, n.name, t, apiv1.FrameType)
	}
	if resp.ContentLength < 0 || resp.ContentLength > maxFrame {
		return nil, fmt.Errorf("%w %s: an answer of %d bytes, want a length up to %d",
			errNode, n.name, resp.ContentLength, int64(maxFrame))
	}
	buf, crc, err := pool.readFrame(resp.Body, int(resp.ContentLength))
	if err != nil {
		return nil, fmt.Errorf("%w %s: the answer was cut: %w", errNode, n.name, err)
	}
	mb, err := readBatch(buf, crc, q, schema, pool)
	if err != nil {
		pool.put(buf)
		return nil, fmt.Errorf("%w %s: %w", errNode, n.name, err)
	}
	return mb, nil
}

// readBatch makes a mini-batch, or a fragment of one, of a frame. It refuses a frame of anything but the request's
// fragment.
func readBatch(buf []byte, crc uint32, q *batchRequest, schema *tensor.Schema,
	pool *buffers) (*tensor.MiniBatch, error) {
	got, err := tensor.ReadFrameOf(buf, crc, q.name, q.fragment, schema)
	if err != nil {
		return nil, err
	}
	if got.Rows != q.rows {
		return nil, fmt.Errorf("fragment %d, of mini-batch %v, has %d rows, the plan gives it %d", q.number, q.name,
			got.Rows, q.rows)
	}
	mb := tensor.New(schema, got.Rows, func() { pool.put(buf) })
	mb.Name, mb.Fragment = got.Name, got.Fragment
	mb.Label, mb.Dense, mb.Dense16, mb.Lengths, mb.Weights = got.Label, got.Dense, got.Dense16, got.Lengths, got.Weights
	mb.Values32, mb.Values64 = got.Values32, got.Values64
	mb.Unique, mb.Inverse = got.Unique, got.Inverse
	return mb, nil
}

// maxRetryAfter bounds the seconds that a node may ask the rank to wait.
const maxRetryAfter = 60

// errorOf reads the error that a node answers instead of a mini-batch.
func (n *node) errorOf(resp *http.Response) error {
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
		return &busyError{err, time.Duration(min(max(after, 0), maxRetryAfter)) * time.Second}
	}
	return err
}
