package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/dataset"
)

// heldCopy is a partition on a drive of a node, read by ranges. It implements source.Source. Its identity is the
// digest of the partition in a manifest.
type heldCopy struct {
	client   *http.Client
	name     string // NODE/DRIVE/PARTITION
	urls     []string
	identity source.Identity
}

// errNoURL says that a node was named without an address that can be read.
var errNoURL = errors.New("the node has no address that can be called")

// openCopy makes a source of a partition's copy. It sends nothing.
func openCopy(client *http.Client, c api.Copy, want dataset.Partition) (*heldCopy, error) {
	h := &heldCopy{
		client: client, name: fmt.Sprintf("%.80s/%.80s/%s", c.Node, c.Drive, want.Name),
		identity: source.Identity{Kind: source.ByContent, Value: want.Content.String(), Size: want.Bytes},
	}
	for _, u := range c.URLs {
		if base, err := identity.BaseURL(u); err == nil {
			h.urls = append(h.urls, apiv1.PartitionURL(base, want.Name, c.Drive))
		}
	}
	if len(h.urls) == 0 {
		return nil, &source.UnreachableError{Name: h.name, Err: errNoURL}
	}
	return h, nil
}

// Name implements source.Source.
func (h *heldCopy) Name() string { return h.name }

// Size implements source.Source.
func (h *heldCopy) Size() int64 { return h.identity.Size }

// Identity implements source.Source.
func (h *heldCopy) Identity() source.Identity { return h.identity }

// Close implements source.Source. Connections belong to the client.
func (h *heldCopy) Close() error { return nil }

// contentTag is the Etag of the partition that is wanted.
func (h *heldCopy) contentTag() string { return `"` + h.identity.Value + `"` }

// ReadAt implements source.Source. The node sends the CRC32C of the bytes that it read from its drive behind them.
func (h *heldCopy) ReadAt(ctx context.Context, b []byte, off int64) (n int, err error) {
	if off < 0 || off >= h.Size() || len(b) == 0 {
		return 0, io.EOF
	}
	want := b[:min(int64(len(b)), h.Size()-off, apiv1.MaxPartitionRange)]
	resp, err := h.sendRequest(ctx, http.MethodGet, "Range", fmt.Sprintf("bytes=%d-%d", off, off+int64(len(want))-1), "Te",
		"trailers")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusPartialContent {
		return 0, h.responseError(resp)
	}
	if tag := resp.Header.Get("Etag"); tag != h.contentTag() {
		return 0, h.changedError(tag)
	}
	if err := source.CheckPart(h.name, resp.Header, off, int64(len(want)), h.Size()); err != nil {
		return 0, err
	}
	if n, err = source.ReadPart(ctx, h.name, resp.Body, want, off); err != nil {
		return 0, err
	}
	promised, err := strconv.ParseUint(resp.Trailer.Get(apiv1.ChecksumHeader), 16, 32)
	if err != nil {
		return 0, &source.AnswerError{Name: h.name, Problem: fmt.Sprintf("bytes %d+%d come without a CRC32C behind "+
			"them", off, n)}
	}
	if got := crc32c.Checksum(want); got != uint32(promised) {
		return 0, &source.CorruptError{Name: h.name, Offset: off, Len: int64(n), Want: uint32(promised), Got: got}
	}
	if n < len(b) && off+int64(n) == h.Size() {
		err = io.EOF
	}
	return n, err
}

// checkContent asks the node to read the partition's end on its drive again. The error is a *source.ChangedError when
// the end has changed.
func (h *heldCopy) checkContent(ctx context.Context) error {
	resp, err := h.sendRequest(ctx, http.MethodHead)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it is empty
	switch resp.StatusCode {
	case http.StatusOK:
		if tag := resp.Header.Get("Etag"); tag != h.contentTag() {
			return h.changedError(tag)
		}
		return nil
	case http.StatusBadRequest, http.StatusPreconditionFailed: // an answer to HEAD has no body with details
		return h.changedError("")
	}
	return h.responseError(resp)
}

// sendRequest sends a request for the wanted partition to one address after the other, until one answers.
func (h *heldCopy) sendRequest(ctx context.Context, method string, headers ...string) (*http.Response, error) {
	var errs []error
	for _, url := range h.urls {
		r, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
		if err != nil {
			return nil, &source.UnreachableError{Name: h.name, Err: err}
		}
		r.Header.Set("If-Match", h.contentTag())
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := h.client.Do(r)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	return nil, &source.UnreachableError{Name: h.name, Err: errors.Join(errs...)}
}

// changedError returns the error of a copy that is another partition. tag is the Etag that the node has for it, or "".
func (h *heldCopy) changedError(tag string) error {
	found := source.Identity{}
	if tag != "" {
		found = source.Identity{Kind: source.ByContent, Value: fmt.Sprintf("%.80s", tag)}
	}
	return &source.ChangedError{Name: h.name, Pinned: h.identity, Found: found}
}

// maxErrorBody bounds the bytes of an error's JSON.
const maxErrorBody = 16 << 10

// responseError reads the error that a node sends instead of bytes.
func (h *heldCopy) responseError(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var body struct{ Code, Message string }
	if json.Unmarshal(raw, &body) != nil {
		body.Message = fmt.Sprintf("%.200q", raw)
	}
	said := fmt.Errorf("the node answers %d: %s", resp.StatusCode, body.Message)
	if body.Code == connect.CodeFailedPrecondition.String() {
		return h.changedError("")
	}
	after := source.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	if err := source.StatusError(h.name, resp.StatusCode, after, said); err != nil {
		return err
	}
	return &source.AnswerError{Name: h.name, Problem: said.Error()}
}
