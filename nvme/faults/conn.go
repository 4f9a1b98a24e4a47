package faults

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// Limits of the bytes that a connection keeps.
const (
	maxKept    = 16 << 10 // bytes of a command capsule that is kept; none that a target takes is larger
	maxKeeping = 8 << 20  // bytes of all
)

var errDropped = fmt.Errorf("the connection is dropped: %w: %w", ErrInjected, net.ErrClosed)

// conn is a connection of a target, as the drive sees it.
type conn struct {
	net.Conn
	in    *Injector
	queue atomic.Int32 // noQueue until Connect
	once  sync.Once
	err   error // err is that of Close.

	wmu  sync.Mutex // guards sent and buf
	sent stream
	buf  []byte

	// These belong to the reader, of which there is one.
	br       *bufio.Reader
	received stream
	dropped  bool
	kept     []kept // in the order of their time
	keeping  int    // bytes
	ready    []byte // ready has the bytes of a command whose time has come.

	dmu  sync.Mutex // guards user and wake
	user time.Time  // the deadline that the target has set for reading; zero: none
	wake time.Time  // when the reader looks for commands whose time has come; zero: never
}

// kept is a command that is delayed on its way to the drive.
type kept struct {
	due time.Time
	pdu []byte
}

func newFaultyConn(in *Injector, nc net.Conn) *conn {
	c := &conn{Conn: nc, in: in, br: bufio.NewReaderSize(nc, 64<<10), sent: stream{in: in, dir: Sent},
		received: stream{in: in, dir: Received}}
	c.queue.Store(noQueue)
	return c
}

// Close closes the connection.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.in.forgetConnection(c)
		c.err = c.Conn.Close()
	})
	return c.err
}

// CloseWrite ends the sending direction.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *conn) endConnection(s *stream) error {
	c.in.log.Warn("fault: connection dropped", "from", c.RemoteAddr().String(), "queue", c.queue.Load(), "pdu", s.pdus,
		"direction", s.dir.String())
	_ = c.Close()
	return errDropped
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (done int, err error) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	// The bytes are gathered: p must not be changed, and one write for each PDU would be slow.
	c.buf = c.buf[:0]
	over := false
	for rest := p; len(rest) > 0 && !over; {
		var n, flip int
		n, flip, over = c.sent.takeBytes(rest, c.queue.Load())
		from := len(c.buf)
		c.buf = append(c.buf, rest[:n]...)
		if flip >= 0 {
			c.flipDigests(&c.sent)
			c.buf[from+flip] ^= 0xff
		}
		rest = rest[n:]
	}
	if done, err = c.Conn.Write(c.buf); err == nil && over {
		err = c.endConnection(&c.sent)
	}
	return done, err
}

func (c *conn) flipDigests(s *stream) {
	c.in.log.Warn("fault: digest made wrong", "from", c.RemoteAddr().String(), "queue", c.queue.Load(), "pdu", s.pdus,
		"direction", s.dir.String())
}

// Read implements net.Conn. One goroutine calls it at a time.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case len(c.ready) > 0:
			n := copy(p, c.ready)
			c.ready = c.ready[n:]
			return n, nil
		case c.dropped:
			return 0, c.endConnection(&c.received)
		}
		if c.received.isBetweenPDUs() {
			again, err := c.examineCommand()
			if err != nil {
				return 0, err
			}
			if again {
				continue
			}
		}
		return c.readPDUBytes(p)
	}
}

// readPDUBytes reads bytes of one PDU, as they come.
func (c *conn) readPDUBytes(p []byte) (int, error) {
	if c.br.Buffered() == 0 {
		if _, err := c.br.Peek(1); err != nil {
			return 0, err
		}
	}
	p = p[:min(len(p), c.br.Buffered())]
	b, err := c.br.Peek(len(p))
	if err != nil {
		return 0, err
	}
	n, flip, over := c.received.takeBytes(b, c.queue.Load())
	copy(p, b[:n])
	if flip >= 0 {
		c.flipDigests(&c.received)
		p[flip] ^= 0xff
	}
	c.dropped = over
	_, err = c.br.Discard(n)
	return n, err
}

// examineCommand examines the next PDU. again means that the reader must look again at the bytes that are there.
func (c *conn) examineCommand() (again bool, err error) {
	h, again, err := c.awaitHeader(pdu.CommonSize)
	if h == nil {
		return again, err
	}
	length := binary.LittleEndian.Uint32(h[4:])
	if pdu.Type(h[0]) != pdu.TypeCapsuleCmd || h[2] != pdu.CapsuleCmdSize || length < pdu.CapsuleCmdSize {
		return false, nil
	}
	h, again, err = c.awaitHeader(pdu.CapsuleCmdSize)
	if h == nil {
		return again, err
	}
	cmd := pdu.CommandOf(h)
	if cmd.Opcode() == fabrics.Opcode && fabrics.Type(&cmd) == fabrics.TypeConnect {
		c.queue.Store(int32(fabrics.ParseConnect(&cmd).Queue))
	}
	keep, away := c.in.countCommand(c.queue.Load(), &cmd)
	switch {
	case away > 0:
		c.in.GoAway(away)
		return false, errDropped
	case keep > 0:
		return c.delayCommand(int(length), keep)
	}
	return false, nil
}

// awaitHeader waits for the first n bytes of a PDU. It returns nil where the stream ends before, and the bytes that
// there are pass. again means that the time of a kept command has come.
func (c *conn) awaitHeader(n int) (b []byte, again bool, err error) {
	defer c.wakeReaderAt(time.Time{})
	for {
		if len(c.kept) > 0 {
			if !time.Now().Before(c.kept[0].due) {
				c.ready = c.kept[0].pdu
				c.keeping -= len(c.ready)
				c.kept = slices.Delete(c.kept, 0, 1)
				return nil, true, nil
			}
			c.wakeReaderAt(c.kept[0].due)
		}
		b, err = c.br.Peek(n)
		switch {
		case err == nil:
			return b, false, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && !c.deadlinePassed():
		case c.br.Buffered() > 0:
			return nil, false, nil
		default:
			return nil, false, err
		}
	}
}

// delayCommand takes the next command out of the stream. again reports whether it did.
func (c *conn) delayCommand(length int, d time.Duration) (again bool, err error) {
	if length > maxKept || c.keeping+length > maxKeeping {
		return false, nil
	}
	k := kept{time.Now().Add(d), make([]byte, length)}
	for n := 0; n < length; {
		more, err := c.readPDUBytes(k.pdu[n:])
		if err != nil {
			return false, err
		}
		if n += more; c.dropped {
			c.ready = k.pdu[:n]
			return true, nil
		}
	}
	at, _ := slices.BinarySearchFunc(c.kept, k, func(a, b kept) int {
		if a.due.After(b.due) {
			return 1
		}
		return -1 // behind those that have the same time
	})
	c.kept = slices.Insert(c.kept, at, k)
	c.keeping += length
	return true, nil
}

// wakeReaderAt wakes the reader at a time; the zero time means never.
func (c *conn) wakeReaderAt(t time.Time) {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	if !c.wake.Equal(t) {
		c.wake = t
		_ = c.Conn.SetReadDeadline(c.earliestDeadline())
	}
}

// earliestDeadline returns when reading ends at the latest; c.dmu is held.
func (c *conn) earliestDeadline() time.Time {
	if c.user.IsZero() || !c.wake.IsZero() && c.wake.Before(c.user) {
		return c.wake
	}
	return c.user
}

// deadlinePassed reports whether the target's own deadline has passed.
func (c *conn) deadlinePassed() bool {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	return !c.user.IsZero() && !time.Now().Before(c.user)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	c.user = t
	return c.Conn.SetReadDeadline(c.earliestDeadline())
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
