package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// A command identifier is a slot's index and, above it, how often the slot was used, so that a late answer finds nobody.
const (
	slotBits = 10
	maxSlots = 1 << slotBits
)

// urgentSlots is how many commands of the admin queue have a place of their own, so that they wait behind nothing: Keep Alive, Abort,
// and the properties of a shutdown.
const urgentSlots = controller.AbortLimit + 2

// An aborted command is asked to end again after abortAgain, then after twice as long each time; when the next pause would be
// abortGrace, as much time has passed and the association is given up.
const (
	abortAgain = 5 * time.Millisecond
	abortGrace = 5 * time.Second
)

// errUnresponsive says that a command did not end although it was aborted.
var errUnresponsive = errors.New("a command that was aborted did not end")

// queue is a host's queue: a connection, and a slot for every command that may be outstanding.
type queue struct {
	l       *link
	id      uint16
	nc      net.Conn
	rx      *reader
	tx      pdu.Rules
	out     *outbox[hostMessage]
	capsule uint32 // most data in a command capsule
	maxData uint32 // MAXH2CDATA
	most    int    // admin queue: entries that an I/O queue may have

	// unwritable is why nothing can be written any more. What the drive sent before is still received.
	unwritable atomic.Pointer[error]

	slots  []slot
	free   chan uint16 // indices of slots that nothing uses
	urgent chan uint16 // of the admin queue, for urgent commands
	ended  chan struct{}
}

// slot is the place of an outstanding command. From the moment when cid is set until done is signalled, the fields belong
// to the goroutine that receives, but for cmd and data, which then only the drive's answers change.
type slot struct {
	cid      atomic.Uint32 // slotUsed and the command identifier; 0 when no answer is awaited
	holds    atomic.Int32  // the answer, and every message that refers to the slot
	deadline atomic.Int64  // nanoseconds of Unix time; 0 none
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
	unsent bool   // the capsule was not written; whoever settles its message has set it
	cpl    nvme.Completion
	err    error
}

const slotUsed = 1 << 16

// hostMessage is something to send: bytes, a command's capsule, or data that was asked for.
type hostMessage struct {
	raw  []byte
	slot *slot
	r2t  pdu.R2T // Length 0: the capsule
}

// newQueue does the initialisation of a connection.
func (l *link) newQueue(ctx context.Context, nc net.Conn, id uint16, depth int, capsule uint32) (*queue, error) {
	o := &l.h.opt
	q := &queue{l: l, id: id, nc: nc, capsule: capsule, slots: make([]slot, depth), ended: make(chan struct{})}
	q.rx = newReader(nc, pdu.Rules{MaxData: 1 << 30}) // what a command asked for bounds it further
	if err := q.initialise(ctx, pdu.ICReq{HeaderDigest: o.HeaderDigest, DataDigest: o.DataDigest}); err != nil {
		return nil, err
	}
	urgent := 0
	if id == 0 {
		urgent = urgentSlots
	}
	q.free, q.urgent = make(chan uint16, depth-urgent), make(chan uint16, urgent)
	for i := range q.slots {
		q.slots[i].done, q.slots[i].late = make(chan struct{}, 1), make(chan struct{}, 1)
		if i < depth-urgent {
			q.free <- uint16(i)
		} else {
			q.urgent <- uint16(i)
		}
	}
	q.out = newOutbox(nc, q.encode, q.settle)
	return q, nil
}

func (q *queue) initialise(ctx context.Context, req pdu.ICReq) error {
	if d, ok := ctx.Deadline(); ok {
		_ = q.nc.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { _ = q.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := q.nc.Write(req.Put(new([pdu.ICSize]byte))); err != nil {
		return err
	}
	f, header, err := q.rx.next()
	switch {
	case err == io.EOF, errors.Is(err, syscall.ECONNRESET):
		return errors.New("the other side closed the connection: is it an NVMe/TCP target, and does it take more connections?")
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
	q.rx.rules.HeaderDigest, q.rx.rules.DataDigest = resp.HeaderDigest, resp.DataDigest
	q.tx = pdu.Rules{HeaderDigest: resp.HeaderDigest, DataDigest: resp.DataDigest, Align: 4 * (int(resp.Alignment) + 1)}
	q.maxData = resp.MaxH2CData
	if !stop() {
		return ctx.Err()
	}
	return q.nc.SetDeadline(time.Time{})
}

// direction is which way a command's data goes.
func direction(cmd *nvme.Command) nvme.Direction {
	if cmd.DataLength() == 0 {
		return nvme.NoData
	}
	if cmd.Opcode() == fabrics.Opcode {
		return nvme.Direction(fabrics.Type(cmd) & 3)
	}
	return cmd.Direction()
}

// do sends a command and waits for its end, taking a slot from free. With timeout 0, while an association is made, the link is lost when ctx
// ends; else the command is aborted when ctx ends or it takes longer than timeout, which below 0 means never.
func (q *queue) do(ctx context.Context, free chan uint16, cmd *nvme.Command, data []byte, timeout time.Duration) (nvme.Completion, error) {
	dir := direction(cmd)
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
	s := &q.slots[i]
	s.used++
	cid := s.used<<slotBits | i
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
	s.cid.Store(slotUsed | uint32(cid))
	if err := q.out.send(hostMessage{slot: s}); err != nil {
		q.failWrite(err)
		s.unsent = true
		s.release()
		<-q.ended
		s.finish(cid, nvme.Completion{}, errLinkLost)
	}
	cause := q.await(ctx, free, s, cid, timeout)
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

// await waits for the end of a command, and hastens it where ctx ends or its time is over; it tells which.
func (q *queue) await(ctx context.Context, free chan uint16, s *slot, cid uint16, timeout time.Duration) error {
	for {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
			return q.giveUp(free, s, cid, timeout, ctx.Err())
		case <-s.late:
			if d := s.deadline.Load(); d != 0 && d < q.l.clock.Load() {
				return q.giveUp(free, s, cid, timeout, ErrTimeout)
			}
		}
	}
}

// giveUp makes a command end: the drive is asked to abort it, and where that does not help, or the command is of those that
// must not take long, the link is lost. It returns cause.
func (q *queue) giveUp(free chan uint16, s *slot, cid uint16, timeout time.Duration, cause error) error {
	l := q.l
	if timeout == 0 || free == l.admin.urgent {
		l.lose(cause)
		<-s.done
		return cause
	}
	l.h.aborts.Add(1)
	// An abort that passed its command on the way finds nothing, so it is sent again.
	for wait := abortAgain; wait < abortGrace; wait *= 2 {
		q.abort(cid)
		again := time.NewTimer(wait)
		select {
		case <-s.done:
			again.Stop()
			return cause
		case <-again.C:
		}
	}
	l.lose(errUnresponsive)
	<-s.done
	return cause
}

// abort asks the drive to end a command of this queue.
func (q *queue) abort(cid uint16) {
	q.l.task(func() {
		cmd := nvme.Abort(q.id, cid)
		_, _ = q.l.admin.do(context.Background(), q.l.admin.urgent, &cmd, nil, abortGrace)
	})
}

// abortEvents ends the event requests that wait.
func (q *queue) abortEvents() {
	for i := range q.slots {
		s := &q.slots[i]
		if v := s.cid.Load(); v != 0 && s.event.Load() {
			q.abort(uint16(v))
		}
	}
}

// expire tells the commands whose time is over.
func (q *queue) expire(now int64) {
	for i := range q.slots {
		s := &q.slots[i]
		if d := s.deadline.Load(); d != 0 && d < now {
			select {
			case s.late <- struct{}{}:
			default:
			}
		}
	}
}

// finish ends the wait for a command's answer, if it is still awaited.
func (s *slot) finish(cid uint16, cpl nvme.Completion, err error) {
	if s.cid.CompareAndSwap(slotUsed|uint32(cid), 0) {
		s.cpl, s.err = cpl, err
		s.release()
	}
}

func (s *slot) release() {
	if s.holds.Add(-1) == 0 {
		s.done <- struct{}{}
	}
}
