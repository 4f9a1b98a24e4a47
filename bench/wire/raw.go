package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// raw copies blocks over TCP and does nothing else.
type raw struct {
	pairs []*pair
}

// pair is one connection, both ends of it.
type pair struct {
	from, to net.Conn
	block    int
	source   []byte       // the bytes that are sent, block after block
	next     int          // in source
	into     [][]byte     // where blocks go, in turn
	total    atomic.Int64 // blocks of this turn, once the sender knows
}

// newRaw makes the connections of a cell. Each has its share of the source, or the same block of a small one, and of
// the buffers.
func newRaw(c cell, source []byte, bufs [][]byte) (_ *raw, err error) {
	r := &raw{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	block := c.op.blockBytes()
	share := len(source) / c.connections / block * block
	for i := range c.connections {
		p := &pair{block: block, source: source[i*share : (i+1)*share]}
		if share == 0 {
			p.source = source[:block]
		}
		for j := i; j < len(bufs); j += c.connections {
			p.into = append(p.into, bufs[j])
		}
		if p.from, err = net.Dial("tcp", l.Addr().String()); err != nil {
			return nil, err
		}
		r.pairs = append(r.pairs, p)
		if p.to, err = l.Accept(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// run copies for a while and returns how many blocks arrived, at least one for each connection. When ctx ends it stops
// early.
func (r *raw) run(ctx context.Context, d time.Duration) (int64, error) {
	var over atomic.Bool
	defer time.AfterFunc(d, func() { over.Store(true) }).Stop()
	defer context.AfterFunc(ctx, func() { over.Store(true) })()
	counts, errs := make([]int64, len(r.pairs)), make([]error, 2*len(r.pairs))
	var wg sync.WaitGroup
	for i, p := range r.pairs {
		wg.Add(2)
		p.total.Store(0)
		go func() {
			defer wg.Done()
			if errs[2*i] = p.send(&over); errs[2*i] != nil {
				_ = p.to.Close() // otherwise its reader would never end
			}
		}()
		go func() {
			defer wg.Done()
			if counts[i], errs[2*i+1] = p.receive(); errs[2*i+1] != nil {
				_ = p.from.Close()
			}
		}()
	}
	wg.Wait()
	var n int64
	for _, c := range counts {
		n += c
	}
	return n, errors.Join(append(errs, ctx.Err())...)
}

// send sends blocks until it is over. Before the last it says how many there are.
func (p *pair) send(over *atomic.Bool) error {
	for n := int64(1); ; n++ {
		last := over.Load()
		if last {
			p.total.Store(n)
		}
		if p.next+p.block > len(p.source) {
			p.next = 0
		}
		if _, err := p.from.Write(p.source[p.next : p.next+p.block]); err != nil {
			return err
		}
		p.next += p.block
		if last {
			return nil
		}
	}
}

// receive receives blocks until the last.
func (p *pair) receive() (n int64, err error) {
	for {
		if _, err := io.ReadFull(p.to, p.into[int(n)%len(p.into)]); err != nil {
			return n, err
		}
		if n++; n == p.total.Load() {
			return n, nil
		}
	}
}

func (r *raw) close() error {
	var errs []error
	for _, p := range r.pairs {
		for _, c := range []net.Conn{p.from, p.to} {
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
	}
	return errors.Join(errs...)
}
