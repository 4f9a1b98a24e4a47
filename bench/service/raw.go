package service

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/bench/workload"
	"github.com/millrace/millrace/host/identity"
)

// raw copies blocks over connections and does nothing else.
type raw struct {
	pairs [][2]net.Conn // writing end, reading end
	block []byte
	into  [][]byte // where blocks go, in turn
}

// newRaw makes n connections of a kind. Over them, blocks of the given size go into the given number of buffers, at
// least n.
func newRaw(ctx context.Context, dir string, t Transport, server, client identity.Options, n, block,
	buffers int) (_ *raw, err error) {
	r := &raw{block: make([]byte, block)}
	workload.FillIncompressible(r.block)
	for range buffers {
		r.into = append(r.into, make([]byte, block))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	network, addr := "tcp", "127.0.0.1:0"
	if t == Unix {
		network, addr = "unix", filepath.Join(dir, "raw.sock")
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, addr)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	sc, err := server.Server()
	if err != nil {
		return r, err
	}
	cc, err := client.Client()
	if err != nil {
		return r, err
	}
	for range n {
		to, err := new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		if err != nil {
			return r, err
		}
		from, err := l.Accept()
		if err != nil {
			return r, errors.Join(err, to.Close())
		}
		if sc != nil {
			cc := cc.Clone()
			cc.ServerName = "127.0.0.1"
			s, c := tls.Server(from, sc), tls.Client(to, cc)
			shaken := make(chan error, 1)
			go func() { shaken <- s.HandshakeContext(ctx) }()
			err := errors.Join(c.HandshakeContext(ctx), <-shaken)
			from, to = s, c
			if err != nil {
				return r, errors.Join(err, from.Close(), to.Close())
			}
		}
		r.pairs = append(r.pairs, [2]net.Conn{from, to})
	}
	return r, nil
}

// run copies for a while and returns how many bytes arrived.
func (r *raw) run(d time.Duration) (int64, error) {
	var over atomic.Bool
	defer time.AfterFunc(d, func() { over.Store(true) }).Stop()
	var wg sync.WaitGroup
	counts, errs := make([]int64, len(r.pairs)), make([]error, 2*len(r.pairs))
	for i, p := range r.pairs {
		blocks := make(chan struct{}, 1<<20) // how many were sent: the reader reads as many
		wg.Go(func() {
			defer close(blocks)
			for ok := true; ok; ok = !over.Load() {
				blocks <- struct{}{}
				if _, err := p[0].Write(r.block); err != nil {
					errs[2*i] = errors.Join(err, p[1].Close())
					return
				}
			}
		})
		wg.Go(func() {
			at := i
			for range blocks {
				buf := r.into[at]
				if at += len(r.pairs); at >= len(r.into) { // it has every len(r.pairs)th buffer for itself
					at = i
				}
				if _, err := io.ReadFull(p[1], buf); err != nil {
					errs[2*i+1] = errors.Join(err, p[0].Close())
					for range blocks { // until the writer has noticed
					}
					return
				}
				counts[i] += int64(len(buf))
			}
		})
	}
	wg.Wait()
	var n int64
	for _, c := range counts {
		n += c
	}
	return n, errors.Join(errs...)
}

func (r *raw) close() error {
	var errs []error
	for _, p := range r.pairs {
		errs = append(errs, p[0].Close(), p[1].Close())
	}
	return errors.Join(errs...)
}
