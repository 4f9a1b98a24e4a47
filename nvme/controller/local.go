package controller

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// urgentDepth is the number of entries of the admin queue that are reserved for Keep Alive and Abort, so that these
// commands do not wait.
const urgentDepth = AbortLimit + 2

// local is a host in the same process. It takes the place of a driver and a transport. Free command identifiers wait
// in channels, so that taking one is taking a place in the queue.
type local struct {
	c      *Controller
	admin  chan uint16
	urgent chan uint16
	io     chan uint16

	closed atomic.Bool
}

const localQueue = 1 // the I/O queue of a local host

// mapped is a local host of a drive that lends views of its memory.
type mapped struct{ *local }

// Local begins an association of a host in this process: it enables a controller and opens an I/O queue of MaxDepth
// commands. For a drive that computes, the connection implements nvme.Mapper unless Options.NoMap is set.
func Local(s *Subsystem, host HostID) (nvme.Conn, error) {
	c, err := s.Connect(host, 0)
	if err != nil {
		return nil, err
	}
	if st := c.PropertySet(PropertyCC, 4, DefaultCC); !st.OK() {
		_ = c.Close()
		return nil, fmt.Errorf("enable controller %d: %w", c.id, st)
	}
	if st := c.OpenQueue(localQueue, MaxDepth); !st.OK() {
		_ = c.Close()
		return nil, fmt.Errorf("open the I/O queue of controller %d: %w", c.id, st)
	}
	l := &local{
		c: c, admin: identifiers(0, AdminDepth-urgentDepth), urgent: identifiers(AdminDepth-urgentDepth, AdminDepth),
		io: identifiers(0, MaxDepth),
	}
	if s.opt.Compute != nil && !s.opt.NoMap {
		return mapped{l}, nil
	}
	return l, nil
}

func identifiers(from, to uint16) chan uint16 {
	ch := make(chan uint16, to-from)
	for id := from; id < to; id++ {
		ch <- id
	}
	return ch
}

// Admin implements nvme.Conn.
func (l *local) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	free := l.admin
	if op := cmd.Opcode(); op == nvme.AdminKeepAlive || op == nvme.AdminAbort {
		free = l.urgent
	}
	return l.submitCommand(ctx, 0, free, cmd, data)
}

// IO implements nvme.Conn.
func (l *local) IO(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return l.submitCommand(ctx, localQueue, l.io, cmd, data)
}

func (l *local) submitCommand(ctx context.Context, queue uint16, free chan uint16, cmd *nvme.Command,
	data []byte) (nvme.Completion, error) {
	if err := ctx.Err(); err != nil {
		return nvme.Completion{}, fmt.Errorf("submit %s: %w", l.commandName(queue, cmd), err)
	}
	var id uint16
	select {
	case id = <-free:
	case <-ctx.Done():
		return nvme.Completion{}, fmt.Errorf("wait for room to submit %s: %w", l.commandName(queue, cmd), ctx.Err())
	}
	defer func() { free <- id }()
	q := *cmd
	q.SetCID(id)
	t, st := l.c.Parse(queue, &q)
	if st.OK() && len(data) != int(t.Length) {
		st = nvme.InvalidSGLLength.Final()
	}
	var out nvme.Completion
	if st.OK() {
		out = l.c.Execute(ctx, queue, &q, data)
		st = out.Status()
	} else {
		out = nvme.NewCompletion(id, st)
	}
	switch {
	case st.OK():
		return out, nil
	case st.Is(nvme.CommandSequenceError) && l.closed.Load():
		return out, fmt.Errorf("%s: %w", l.commandName(queue, &q), nvme.ErrClosed)
	case st.Is(nvme.CommandAborted) && ctx.Err() != nil:
		return out, fmt.Errorf("%s: %w", l.commandName(queue, &q), ctx.Err())
	}
	return out, fmt.Errorf("%s: %w", l.commandName(queue, &q), st)
}

// commandName says which command it is, for an error.
func (l *local) commandName(queue uint16, cmd *nvme.Command) string {
	if h, _, st := l.c.findHandler(queue, cmd); st.OK() {
		return fmt.Sprintf("%s on namespace %d", h.name, cmd.NSID())
	}
	return fmt.Sprintf("command %02xh on namespace %d", cmd.Opcode(), cmd.NSID())
}

// Close implements nvme.Conn. Closing twice is not an error.
func (l *local) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.c.Close()
}

// MapSLM implements nvme.Mapper.
func (m mapped) MapSLM(off, n uint64) ([]byte, bool) {
	return m.c.sub.slm.View(&m.c.owner, cs.Range{Addr: off, Len: n})
}
