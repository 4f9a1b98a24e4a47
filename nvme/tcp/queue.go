package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// A command identifier is the index of an entry, and above it a count of the entry's uses: a late answer to an earlier
// command matches no entry.
const (
	entryBits  = 10
	maxEntries = 1 << entryBits
)

// urgentEntries is the number of entries of the admin queue that are reserved for commands that must not wait: Keep
// Alive, Abort, and the properties of a shutdown.
const urgentEntries = controller.AbortLimit + 2

// A command that does not end after an Abort is aborted again after abortAgain, and then after pauses of twice the
// length. When the next pause would be abortGrace, as much time has passed, and the association is given up.
const (
	abortAgain = 5 * time.Millisecond
	abortGrace = 5 * time.Second
)

// errUnresponsive says that a command did not end although it was aborted.
var errUnresponsive = errors.New("a command that was aborted did not end")

// queue is a host's side of a queue: a connection, and an entry for every command that may be outstanding.
type queue struct {
	l       *link
	id      uint16
	nc      net.Conn
	rx      *stream.Reader
	tx      pdu.Rules
	out     *stream.Outbox[hostMessage]
	capsule uint32 // most data in a command capsule
	maxData uint32 // MAXH2CDATA
	most    int    // admin queue: entries that an I/O queue may have

	// unwritable is the error after which nothing can be written. PDUs that the drive sent before are still received.
	unwritable atomic.Pointer[error]

	entries []entry
	free    chan uint16 // indices of entries that nothing uses
	urgent  chan uint16 // The admin queue has these, for urgent commands.
	ended   chan struct{}
}

// entry holds an outstanding command. From the moment when cid is set until done is signalled, the fields belong to the
// receiving goroutine; cmd does not change, and only the drive's answers change data.
type entry struct {
	cid      atomic.Uint32 // entryUsed and the command identifier; 0 when no answer is awaited
	holds    atomic.Int32  // the answer, and every message that refers to the entry
	deadline atomic.Int64  // on link.clock; 0 none
	done     chan struct{} // signalled when holds falls to 0
	late     chan struct{} // signalled when the deadline is over
	event    atomic.Bool   // an Asynchronous Event Request
	used     uint16

	cmd    nvme.Command
	data   []byte
	dir    nvme.Direction
	inline bool // the data travels in the capsule
	got    uint32
	asked  uint32 // bytes that the drive has asked for
	broken bool   // a data digest did not match
	unsent bool   // the capsule was not written; set by the code that settles its message
	cpl    nvme.Completion
	err    error
}

const entryUsed = 1 << 16

// hostMessage is what a host sends: bytes as they are, a command's capsule, or data that the drive requested.
type hostMessage struct {
	raw   []byte
	entry *entry
	r2t   pdu.R2T // Length 0: the capsule
}

// newQueue initialises a connection: it sends ICReq and receives ICResp.
func (l *link) newQueue(ctx context.Context, nc net.Conn, id uint16, depth int, capsule uint32) (*queue, error) {
	o := &l.h.opt
	q := &queue{l: l, id: id, nc: nc, capsule: capsule, entries: make([]entry, depth), ended: make(chan struct{})}
	q.rx = stream.NewReader(nc, pdu.Rules{MaxData: 1 << 30}) // what a command asked for bounds it further
	if err := q.initialise(ctx, pdu.ICReq{HeaderDigest: o.HeaderDigest, DataDigest: o.DataDigest}); err != nil {
		return nil, err
	}
	urgent := 0
	if id == 0 {
		urgent = urgentEntries
	}
	q.free, q.urgent = make(chan uint16, depth-urgent), make(chan uint16, urgent)
	for i := range q.entries {
		q.entries[i].done, q.entries[i].late = make(chan struct{}, 1), make(chan struct{}, 1)
		if i < depth-urgent {
			q.free <- uint16(i)
		} else {
			q.urgent <- uint16(i)
		}
	}
	q.out = stream.NewOutbox(nc, q.encodeMessage, q.settleMessage)
	return q, nil
}

// unansweredError says that the other side closed a connection before it answered. It is an ErrLost, since a target may
// end just then. It is not io.EOF, with which streams end.
type unansweredError struct{}

func (unansweredError) Error() string {
	return "the other side closed the connection: is it an NVMe/TCP target, and does it take more connections?"
}

func (unansweredError) Unwrap() error { return ErrLost }

// closedByOther reports whether an error of a connection says that the other side closed it.
func closedByOther(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE},
		func(closed error) bool { return errors.Is(err, closed) })
}

func (q *queue) initialise(ctx context.Context, req pdu.ICReq) error {
	if d, ok := ctx.Deadline(); ok {
		_ = q.nc.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { _ = q.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := q.nc.Write(req.Put(new([pdu.ICSize]byte))); closedByOther(err) {
		return unansweredError{}
	} else if err != nil {
		return err
	}
	f, header, err := q.rx.NextPDU()
	switch {
	case closedByOther(err):
		return unansweredError{}
	case err != nil:
		return fmt.Errorf("wait for the answer: %w", err)
	case f.Type == pdu.TypeC2HTermReq:
		return pdu.ParseTerminate(header)
	case f.Type != pdu.TypeICResp:
		return fmt.Errorf("the answer is a %s, not an ICResp", f.Type)
	}
	resp, err := pdu.ParseICResp((*[pdu.ICSize]byte)(header), req)
	if err != nil {
		return err
	}
	q.rx.Rules.HeaderDigest, q.rx.Rules.DataDigest = resp.HeaderDigest, resp.DataDigest
	q.tx = pdu.Rules{HeaderDigest: resp.HeaderDigest, DataDigest: resp.DataDigest, Align: 4 * (int(resp.Alignment) + 1)}
	q.maxData = resp.MaxH2CData
	if !stop() {
		return ctx.Err()
	}
	return q.nc.SetDeadline(time.Time{})
}

// executeCommand sends a command and waits for its end. It takes an entry from free. If ctx ends or the command takes
// longer than timeout, the command is aborted; a negative timeout means no limit. With timeout 0, for commands that
// make an association, the link is lost instead when ctx ends.
func (q *queue) executeCommand(ctx context.Context, free chan uint16, cmd *nvme.Command, data []byte,
	timeout time.Duration) (nvme.Completion, error) {
	dir := fabrics.Direction(cmd)
	if len(data) != int(cmd.DataLength()) || dir == nvme.Bidirectional {
		return nvme.Completion{}, nvme.InvalidSGLLength.Final()
	}
	select {
	case <-q.l.over:
		return nvme.Completion{}, errUnsent
	default:
	}
	var i uint16
	select {
	case i = <-free:
	default:
		select {
		case i = <-free:
		case <-ctx.Done():
			return nvme.Completion{}, fmt.Errorf("wait for room in the queue: %w", ctx.Err())
		case <-q.l.over:
			return nvme.Completion{}, errUnsent
		}
	}
	s := &q.entries[i]
	s.used++
	cid := s.used<<entryBits | i
	s.cmd, s.data, s.dir = *cmd, data, dir
	s.inline = dir == nvme.HostToController && uint32(len(data)) <= q.capsule
	s.got, s.asked, s.broken, s.unsent, s.cpl, s.err = 0, 0, false, false, nvme.Completion{}, nil
	s.cmd.SetCID(cid)
	if s.inline {
		s.cmd.SetSGL(nvme.SGL{Length: uint32(len(data)), Type: nvme.SGLDataBlockOffset})
	} else {
		s.cmd.SetData(uint32(len(data)))
	}
	select {
	case <-s.late: // of the command that was here before
	default:
	}
	now := q.l.clock.Load()
	q.l.sent.Store(now)
	s.deadline.Store(0)
	if timeout > 0 {
		s.deadline.Store(now + int64(timeout))
	}
	s.event.Store(q.id == 0 && cmd.Opcode() == nvme.AdminAsyncEventRequest)
	s.holds.Store(2)
	s.cid.Store(entryUsed | uint32(cid))
	if err := q.out.Send(hostMessage{entry: s}); err != nil {
		q.failWrite(err)
		s.unsent = true
		s.releaseHold()
		<-q.ended
		s.finishCommand(cid, nvme.Completion{}, errLinkLost)
	}
	cause := q.awaitCompletion(ctx, free, s, cid, timeout)
	s.deadline.Store(0)
	cpl, err := s.cpl, s.err
	if s.unsent && err != nil {
		err = errUnsent
	}
	s.data = nil
	free <- i
	switch st := cpl.Status(); {
	case err != nil && cause != nil:
		return cpl, cause
	case err != nil:
		return cpl, err
	case st.OK():
		return cpl, nil
	case cause != nil && st.Is(nvme.CommandAborted):
		return cpl, cause
	default:
		return cpl, st
	}
}

// awaitCompletion waits for the end of a command. If ctx ends or the deadline passes, it gives the command up and
// returns the cause.
func (q *queue) awaitCompletion(
	ctx context.Context, free chan uint16, s *entry, cid uint16, timeout time.Duration,
) error {
	for {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
			return q.giveUpCommand(free, s, cid, timeout, ctx.Err())
		case <-s.late:
			if d := s.deadline.Load(); d != 0 && d < q.l.clock.Load() {
				return q.giveUpCommand(free, s, cid, timeout, ErrTimeout)
			}
		}
	}
}

// giveUpCommand ends a command early: the drive is asked to abort it. If that does not end the command, or the command
// is one that must not take long, the link is lost. It returns cause.
func (q *queue) giveUpCommand(free chan uint16, s *entry, cid uint16, timeout time.Duration, cause error) error {
	l := q.l
	if timeout == 0 || free == l.admin.urgent {
		l.endWithCause(cause)
		<-s.done
		return cause
	}
	l.h.aborts.Add(1)
	// An abort that passed its command on the way finds nothing, so it is sent again.
	for wait := abortAgain; wait < abortGrace; wait *= 2 {
		q.abortCommand(cid)
		again := time.NewTimer(wait)
		select {
		case <-s.done:
			again.Stop()
			return cause
		case <-again.C:
		}
	}
	l.endWithCause(errUnresponsive)
	<-s.done
	return cause
}

// abortCommand asks the drive to end a command of this queue.
func (q *queue) abortCommand(cid uint16) {
	q.l.runTask(func() {
		cmd := nvme.Abort(q.id, cid)
		_, _ = q.l.admin.executeCommand(context.Background(), q.l.admin.urgent, &cmd, nil, abortGrace)
	})
}

// abortEvents aborts the waiting Asynchronous Event Requests.
func (q *queue) abortEvents() {
	for i := range q.entries {
		s := &q.entries[i]
		if v := s.cid.Load(); v != 0 && s.event.Load() {
			q.abortCommand(uint16(v))
		}
	}
}

// expireCommands signals the commands whose deadline has passed.
func (q *queue) expireCommands(now int64) {
	for i := range q.entries {
		s := &q.entries[i]
		if d := s.deadline.Load(); d != 0 && d < now {
			select {
			case s.late <- struct{}{}:
			default:
			}
		}
	}
}

// finishCommand ends a command with its completion or an error, unless it has ended already.
func (s *entry) finishCommand(cid uint16, cpl nvme.Completion, err error) {
	if s.cid.CompareAndSwap(entryUsed|uint32(cid), 0) {
		s.cpl, s.err = cpl, err
		s.releaseHold()
	}
}

func (s *entry) releaseHold() {
	if s.holds.Add(-1) == 0 {
		s.done <- struct{}{}
	}
}
