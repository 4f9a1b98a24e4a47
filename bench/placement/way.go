package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/tensor"
)

// way is the link between the part that preprocesses and the trainer: HTTP over loopback, a GET a mini-batch, as
// storage nodes give them.
type way struct {
	url    string
	server *http.Server
	client *http.Client
	done   chan error
	served chan struct{} // a token for each frame that serve has written, and no longer reads
	buffer []byte

	mu    sync.Mutex
	ready *tensor.MiniBatch // the next one to be given
}

func newWay() (*way, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &way{
		url: "http://" + l.Addr().String() + "/v1/minibatch", done: make(chan error, 1), served: make(chan struct{}, 1),
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}},
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: time.Minute}
	go func() { w.done <- w.server.Serve(l) }()
	return w, nil
}

// serve writes the frame of the mini-batch that is ready.
func (w *way) serve(rw http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	mb := w.ready
	w.mu.Unlock()
	frame, err := tensor.EncodeFrame(mb)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Length", strconv.FormatInt(frame.Len(), 10))
	_, _ = frame.WriteTo(rw) // the trainer finds a frame cut short
	w.served <- struct{}{}
}

// fetch brings a mini-batch to the trainer. The frame is valid until the next call.
func (w *way) fetch(ctx context.Context, mb *tensor.MiniBatch) (frame []byte, err error) {
	w.mu.Lock()
	w.ready = mb
	w.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the worker answers %s", resp.Status)
	}
	if most := int64(1) << 32; resp.ContentLength < 0 || resp.ContentLength > most {
		return nil, fmt.Errorf("a frame of %d bytes, at most %d", resp.ContentLength, most)
	}
	if int64(cap(w.buffer)) < resp.ContentLength {
		w.buffer = make([]byte, resp.ContentLength)
	}
	frame = w.buffer[:resp.ContentLength]
	if _, err = io.ReadFull(resp.Body, frame); err != nil {
		return nil, err
	}
	<-w.served // the mini-batch may be released now
	return frame, nil
}

func (w *way) close() error {
	w.client.CloseIdleConnections()
	err := w.server.Close()
	if serr := <-w.done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
