// Package rawsocket copies blocks of bytes over connections and does nothing else: the bound of every transfer over
// connections of the same kind on the same machine.
//
// # Concurrency
//
// Connections have one user. Both ends are in this process.
//
// # Errors
//
// Errors are those of the sockets and of TLS.
package rawsocket

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/host/identity"
)

// Connections are some connections of one kind.
type Connections struct {
	pairs [][2]net.Conn // writing end, reading end
	block []byte
	into  [][]byte // where blocks go, in turn
}

// Options describe connections.
type Options struct {
	Transport      cluster.Transport
	Dir            string           // for a socket of this machine
	Server, Client identity.Options // They are the two ends, for TLS.
	Connections    int
	Block          int // bytes
	Buffers        int // Blocks are read into them in turn; each connection has at least one.
}

// Connect makes connections.
func Connect(ctx context.Context, o Options) (_ *Connections, err error) {
	r := &Connections{block: make([]byte, o.Block)}
	FillIncompressible(r.block)
	for range max(o.Buffers, o.Connections) {
		r.into = append(r.into, make([]byte, o.Block))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	network, addr := "tcp", "127.0.0.1:0"
	if o.Transport == cluster.Unix {
		network, addr = "unix", filepath.Join(o.Dir, "raw.sock")
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, addr)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	sc, err := o.Server.Server()
	if err != nil {
		return r, err
	}
	cc, err := o.Client.Client()
	if err != nil {
		return r, err
	}
	for range o.Connections {
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

// Run copies for a while and returns how many bytes arrived.
func (r *Connections) Run(d time.Duration) (int64, error) {
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

// Close closes the connections.
func (r *Connections) Close() error {
	var errs []error
	for _, p := range r.pairs {
		errs = append(errs, p[0].Close(), p[1].Close())
	}
	return errors.Join(errs...)
}

// FillIncompressible fills b with bytes that neither compress nor repeat, so that no link, file system or page cache
// makes less of them. Up to seven bytes at the end stay as they are.
func FillIncompressible(b []byte) {
	x := uint64(88172645463325252)
	for ; len(b) >= 8; b = b[8:] {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(b, x)
	}
}
