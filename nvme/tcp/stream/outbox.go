package stream

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
)

// Sizes of what is written at a time.
const (
	writeBuffer = 64 << 10
	copyLimit   = 8 << 10 // larger data is written from where it lies, not copied beside its header
	flushRounds = 4       // batches that a sender writes for others before it goes on its way
)

// ErrClosed is returned for a message after the last one. The error that settle gets for a message of which no
// byte was written wraps it.
var ErrClosed = errors.New("nothing more is sent on this connection")

// Outbox sends messages on a connection in the order in which it takes them. There is no goroutine that all senders
// hand over to: a sender that finds no write in progress writes its own message and those that arrive meanwhile. So a
// busy connection writes many PDUs at a time, and an idle connection switches no goroutine. A goroutine that receives
// must not write, or two sides that both write and do not read would wait for each other: it calls Queue or Post, which
// leaves the writing to a goroutine that ends with Stop.
//
// encode turns a message into bytes. settle is called once for every message that was taken, when its bytes have been
// written or will never be. Both are called by one goroutine at a time.
type Outbox[M any] struct {
	encode func(*Batch, *M)
	settle func(*M, error)
	batch  Batch

	Writing Stopwatch // runs while a write is in progress

	mu     sync.Mutex
	queue  []M
	spare  []M // what was written: the memory is used again
	busy   bool
	closed bool // the last message has been taken
	err    error
	idle   *sync.Cond

	kick chan struct{} // wakes the goroutine to write; busy is set for it
	gone chan struct{} // it has ended
}

// NewOutbox makes an outbox of a connection. Stop ends it.
func NewOutbox[M any](conn net.Conn, encode func(*Batch, *M), settle func(*M, error)) *Outbox[M] {
	o := &Outbox[M]{encode: encode, settle: settle, batch: Batch{conn: conn, buf: make([]byte, 0, writeBuffer)}}
	o.Writing.Init()
	o.idle = sync.NewCond(&o.mu)
	o.kick, o.gone = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(o.gone)
		for range o.kick {
			o.writeRounds(-1)
		}
	}()
	return o
}

// Send takes a message, and may write. An error means that the message was not taken.
func (o *Outbox[M]) Send(m M) error {
	write, err := o.takeMessage(m, false)
	if write {
		// Others that are ready to send get to do so first, and one write serves all.
		runtime.Gosched()
		o.writeRounds(flushRounds)
	}
	return err
}

// Queue takes a message and does not write. last makes it the last message.
func (o *Outbox[M]) Queue(m M, last bool) error {
	write, err := o.takeMessage(m, last)
	if write {
		o.kick <- struct{}{}
	}
	return err
}

// Post is Queue in the form of Send.
func (o *Outbox[M]) Post(m M) error { return o.Queue(m, false) }

// takeMessage queues a message. It reports whether its sender has to write.
func (o *Outbox[M]) takeMessage(m M, last bool) (write bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return false, o.err
	case o.closed:
		return false, ErrClosed
	}
	o.closed = last
	o.queue = append(o.queue, m)
	write = !o.busy
	o.busy = true
	return write, nil
}

// writeRounds writes until the queue is empty, or for the given number of rounds; then the outbox's own goroutine
// continues.
func (o *Outbox[M]) writeRounds(rounds int) {
	for ; ; rounds-- {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.busy = false
			o.idle.Broadcast()
			o.mu.Unlock()
			return
		}
		if rounds == 0 {
			o.mu.Unlock()
			o.kick <- struct{}{} // has room, as busy is passed on with it
			return
		}
		work, err := o.queue, o.err
		o.queue, o.spare = o.spare[:0], nil
		o.mu.Unlock()
		if err == nil {
			o.Writing.Start()
			for i := range work {
				o.encode(&o.batch, &work[i])
			}
			err = o.batch.flushParts()
			o.Writing.Stop()
		} else {
			err = fmt.Errorf("%w: %w", ErrClosed, err)
		}
		for i := range work {
			o.settle(&work[i], err)
		}
		clear(work)
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.spare = work
		o.mu.Unlock()
	}
}

// AwaitWritten returns when every message that was taken is written, or will never be.
func (o *Outbox[M]) AwaitWritten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.busy {
		o.idle.Wait()
	}
}

// Stop refuses further messages, and waits until those that were taken are settled. The connection must have
// been closed, or the other side must be reading. Stop is called once.
func (o *Outbox[M]) Stop(err error) {
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	for o.busy {
		o.idle.Wait()
	}
	o.mu.Unlock()
	close(o.kick)
	<-o.gone
}

// Batch gathers the bytes of one write.
type Batch struct {
	conn  net.Conn
	buf   []byte // what is copied; it never grows, as parts refer to it
	from  int    // what of buf no part holds yet
	parts net.Buffers
	out   net.Buffers
	err   error
}

// Reserve returns n contiguous bytes to fill, n at most a few hundred.
func (b *Batch) Reserve(n int) []byte {
	if len(b.buf)+n > cap(b.buf) {
		b.writeParts()
	}
	l := len(b.buf)
	b.buf = b.buf[:l+n]
	return b.buf[l : l+n : l+n]
}

// AddData adds bytes. They must not change until the batch is flushed.
func (b *Batch) AddData(p []byte) {
	if len(p) <= copyLimit {
		copy(b.Reserve(len(p)), p)
		return
	}
	b.endPart()
	b.parts = append(b.parts, p)
}

// endPart makes a part of the bytes that were copied since the last part.
func (b *Batch) endPart() {
	if b.from < len(b.buf) {
		b.parts = append(b.parts, b.buf[b.from:len(b.buf):len(b.buf)])
		b.from = len(b.buf)
	}
}

// writeParts writes all parts. The first error is kept, and later writes do nothing.
func (b *Batch) writeParts() {
	b.endPart()
	if b.err == nil {
		if len(b.parts) == 1 {
			_, b.err = b.conn.Write(b.parts[0])
		} else if len(b.parts) > 1 {
			b.out = b.parts
			_, b.err = b.out.WriteTo(b.conn)
		}
	}
	clear(b.parts)
	b.buf, b.from, b.parts, b.out = b.buf[:0], 0, b.parts[:0], nil
}

func (b *Batch) flushParts() error {
	b.writeParts()
	return b.err
}
