package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/tensor/arrowipc"
)

// plain wraps a binding outside Connect: role, errors.
func (a *Agent) plain(roles []identity.Role, f func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := identity.Require(r.TLS, roles...)
		if err == nil {
			err = f(w, r)
		}
		if err != nil {
			writeError(w, err)
		}
	}
}

// query is what a GET of a mini-batch asks for.
type query struct {
	job           dataset.Digest
	epoch         uint64
	drive         string
	number, until uint64 // until is above number
}

// parseQuery reads job=HEX&epoch=E&drive=NAME&number=N&until=U: each once, until may be left out, nothing else. The error wraps ErrRequest.
func parseQuery(raw string) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, fmt.Errorf("%w: query: %w", ErrRequest, err)
	}
	one := map[string]string{}
	for key, v := range values {
		switch key {
		case "job", "epoch", "drive", "number", "until":
		default:
			return query{}, fmt.Errorf("%w: unknown parameter %.40q: want job, epoch, drive, number, until", ErrRequest, key)
		}
		if len(v) != 1 {
			return query{}, fmt.Errorf("%w: parameter %s is there %d times", ErrRequest, key, len(v))
		}
		one[key] = v[0]
	}
	var q query
	job := one["job"]
	if n, err := hex.Decode(q.job[:], []byte(job[:min(len(job), 64)])); err != nil || n != len(q.job) || len(job) != 64 {
		return query{}, fmt.Errorf("%w: job %.80q: want 64 hexadecimal digits", ErrRequest, job)
	}
	if q.drive = one["drive"]; q.drive == "" {
		return query{}, fmt.Errorf("%w: which drive?", ErrRequest)
	}
	for _, p := range []struct {
		name string
		into *uint64
	}{{"epoch", &q.epoch}, {"number", &q.number}, {"until", &q.until}} {
		text, given := one[p.name]
		if !given && p.name == "until" {
			q.until = q.number + 1
			break
		}
		if *p.into, err = strconv.ParseUint(text, 10, 63); err != nil {
			return query{}, fmt.Errorf("%w: %s %.40q: want a number", ErrRequest, p.name, text)
		}
	}
	if q.until <= q.number {
		return query{}, fmt.Errorf("%w: until %d is not above number %d", ErrRequest, q.until, q.number)
	}
	return q, nil
}

// serveMiniBatch answers GET /v1/minibatch.
func (a *Agent) serveMiniBatch(w http.ResponseWriter, r *http.Request) error {
	begin := time.Now()
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	owner, err := a.entitled(r, &q)
	if err != nil {
		a.metrics.failures.WithLabelValues(codeOf(err).String()).Inc()
		return err
	}
	p, err := a.miniBatch(w, r, q, owner)
	if err != nil {
		a.metrics.failures.WithLabelValues(codeOf(err).String()).Inc()
		return err
	}
	rows := p.MiniBatch().Rows
	n, err := a.writeMiniBatch(w, r, p)
	if err != nil {
		return err
	}
	if n > 0 {
		a.metrics.served(q.drive, rows, n, time.Since(begin))
	}
	return nil
}

// entitled checks the ticket of a request, and keeps what is made ahead within its lease. It returns for whom the split
// counts. Without a control plane nobody grants leases, and there are no tickets.
func (a *Agent) entitled(r *http.Request, q *query) (owner string, err error) {
	if len(a.config.Control) == 0 {
		return "", nil
	}
	var peer identity.Identity
	if r.TLS != nil {
		if peer, err = identity.Peer(r.TLS); err != nil {
			return "", err
		}
	}
	t, err := a.tickets.Check(r.Header.Get(apiv1.TicketHeader), peer, &ticket.Ask{Job: q.job, Epoch: q.epoch, Drive: q.drive, Number: q.number})
	if err != nil {
		if errors.Is(err, ticket.ErrKey) {
			if _, ok := a.unknownKeys.next(time.Now()); ok {
				a.heartbeat.SendSoon() // the leader's answer brings the key, if there is one
			}
		}
		if n, ok := a.refusals.next(time.Now()); ok {
			a.log.Warn("mini-batch refused", "digest", short(q.job), "number", q.number, "drive", q.drive, "peer", r.RemoteAddr, "identity", peer.String(), "not_logged", n, "error", err)
		}
		return "", err
	}
	if t == nil {
		return "", nil
	}
	q.until = min(q.until, t.To)
	return t.Owner, nil
}

// miniBatch gets the mini-batch that is asked for.
func (a *Agent) miniBatch(w http.ResponseWriter, r *http.Request, q query, owner string) (*splits.Response, error) {
	if a.supervisor(q.drive) == nil {
		return nil, a.noDrive(q.drive)
	}
	plan, err := a.manager.Plan(q.job, q.epoch)
	if err != nil {
		return nil, err
	}
	m, err := plan.MiniBatch(q.number)
	if err != nil {
		return nil, err
	}
	split, err := plan.Split(m.Split)
	if err != nil {
		return nil, err
	}
	conn, _ := r.Context().Value(peerKey{}).(*splits.Peer)
	control := http.NewResponseController(w)
	return a.runs.Get(r.Context(), splits.Request{
		Key: splits.Key{Job: q.job, Epoch: q.epoch, Drive: q.drive, Place: split.Place}, Split: split, Number: q.number, Until: q.until, Peer: conn, Owner: owner,
	}, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
}

// writeMiniBatch writes a response and gives its mini-batch back. An error is one that the client can still be told; a client that is gone is
// none, and then n is 0.
func (a *Agent) writeMiniBatch(w http.ResponseWriter, r *http.Request, p *splits.Response) (n int64, err error) {
	written := false
	defer func() { a.runs.Done(p, written) }()
	h := w.Header()
	var write func() (int64, error)
	if strings.Contains(r.Header.Get("Accept"), apiv1.ArrowType) {
		b, err := arrowFile(p.MiniBatch())
		if err != nil {
			return 0, err
		}
		h.Set("Content-Type", apiv1.ArrowType)
		n, write = int64(b.Len()), func() (int64, error) { return b.WriteTo(w) }
	} else {
		frame, err := tensor.EncodeFrame(p.MiniBatch())
		if err != nil {
			return 0, err
		}
		h.Set("Content-Type", apiv1.FrameType)
		n, write = frame.Len(), func() (int64, error) { return frame.WriteTo(w) }
	}
	h.Set("Content-Length", strconv.FormatInt(n, 10))
	if r.Method == http.MethodHead {
		return 0, nil // it was not taken
	}
	// A client that takes nothing must not hold the drive's memory.
	deadline := time.Now().Add(time.Duration(a.config.Runs.WriteTime) + time.Duration(n>>24)*time.Second)
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(deadline); err != nil {
		a.log.Debug("no write deadline", "error", err)
	}
	if a.runs.Stopped(p) { // before the deadline was set, so that it undid the one that should end us
		return 0, splits.ErrStopped
	}
	_, err = write()
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		a.log.Debug("mini-batch not written", "digest", short(dataset.Digest(p.MiniBatch().Name.Job)), "number", p.MiniBatch().Name.Number, "error", err)
		a.metrics.cut.Inc()
		return 0, nil
	}
	written = true
	return n, nil
}

// arrowFile is a mini-batch as an Arrow IPC file.
func arrowFile(mb *tensor.MiniBatch) (*bytes.Buffer, error) {
	b := &bytes.Buffer{}
	b.Grow(int(mb.Bytes()) + 16<<10)
	w, err := arrowipc.NewWriter(b, mb.Schema)
	if err == nil {
		err = w.Write(mb)
	}
	if err == nil {
		err = w.Close()
	}
	return b, err
}

// short is how logs name a job.
func short(d dataset.Digest) string { return d.String()[:12] }
