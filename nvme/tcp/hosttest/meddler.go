package hosttest

import (
	"context"
	"net"
	"sync"

	"github.com/millrace/millrace/nvme/tcp"
)

// meddler is a network connection that a test reaches into.
type meddler struct {
	net.Conn
	most  int            // bytes a read, 0: as many as come
	seen  func(b []byte) // what was read, before it is given on
	wrote func(b []byte) // a copy of what is written, before it is sent
	limit *limit         // nil: none
}

// limit lets n bytes pass, over all connections, and then breaks the connection that they come to.
type limit struct {
	mu   sync.Mutex
	left int
}

// spend takes n bytes, and reports whether there were fewer. It reports that once.
func (l *limit) spend(n int) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.left
	l.left -= n
	return before > 0 && l.left <= 0
}

func (m *meddler) Read(b []byte) (int, error) {
	if m.most > 0 {
		b = b[:min(len(b), m.most)]
	}
	n, err := m.Conn.Read(b)
	if m.limit.spend(n) {
		_ = m.Conn.Close()
		return n / 2, net.ErrClosed
	}
	if m.seen != nil {
		m.seen(b[:n])
	}
	return n, err
}

func (m *meddler) Write(b []byte) (int, error) {
	if m.wrote != nil {
		b = append([]byte(nil), b...)
		m.wrote(b)
	}
	if m.limit.spend(len(b)) {
		n, _ := m.Conn.Write(b[:len(b)/2])
		_ = m.Conn.Close()
		return n, net.ErrClosed
	}
	return m.Conn.Write(b)
}

// through dials through meddlers.
func through(newMeddler func() *meddler) func(*tcp.DialOptions) {
	return func(o *tcp.DialOptions) {
		o.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			m := newMeddler()
			m.Conn = nc
			return m, nil
		}
	}
}
