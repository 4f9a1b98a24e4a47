package admission

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPeer(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7:80": "10.0.0.7", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:1": "2001:db8:1:2::/64",
		"[::1]:80":                 "::1", "[::ffff:10.0.0.7]:80": "10.0.0.7", "[fe80::1%eth0]:80": "fe80::/64",
		"@": Local, "": Local,
		"/run/x.sock": Local,
	} {
		assert.Equal(t, want, PeerOf(text), text)
	}
	assert.Equal(t, "10.0.0.7", Peer(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 1}))
	assert.Equal(t, Local, Peer(&net.UnixAddr{Name: "@"}))
	assert.Equal(t, Local, Peer(nil))
}

// scripted is a listener whose connections come from anywhere, and whose errors are a test's.
type scripted struct {
	next chan any
	net.Listener
}

type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func (s *scripted) Accept() (net.Conn, error) {
	switch x := (<-s.next).(type) {
	case error:
		return nil, x
	case string:
		a, b := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, b) }()
		return from{a, &net.TCPAddr{IP: net.ParseIP(x), Port: 1}}, nil
	}
	return nil, net.ErrClosed
}

func (s *scripted) Addr() net.Addr { return &net.TCPAddr{} }
func (s *scripted) Close() error   { return nil }

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestLimit: of all peers and of one, from both sides, and a place that is given back is another's.
func TestLimit(t *testing.T) {
	var log lines
	limit := NewLimit(8, slog.New(slog.NewTextHandler(&log, nil)))
	in := &scripted{next: make(chan any, 100)}
	l := limit.Listen(in)
	accept := func(ip ...string) net.Conn {
		for _, x := range ip {
			in.next <- x
		}
		c, err := l.Accept()
		require.NoError(t, err)
		return c
	}
	var held []net.Conn
	for range 5 { // half and one more
		held = append(held, accept("10.0.0.1"))
	}
	other := accept("10.0.0.1", "10.0.0.1", "10.0.0.2") // two are refused, the third is another peer's
	assert.Equal(t, "10.0.0.2:1", other.RemoteAddr().String())
	assert.Equal(t, 2, log.count("the peer holds as many connections"))
	require.NoError(t, held[0].Close())
	require.NoError(t, held[0].Close(), "twice is once")
	held[0] = accept("10.0.0.1")
	for limit.Held() < 8 {
		accept("127.0.0.1") // on this machine many processes share an address
	}
	in.next <- "10.0.0.3"
	in.next <- errors.New("the end")
	_, err := l.Accept()
	require.ErrorContains(t, err, "the end")
	assert.Equal(t, 1, log.count("the server holds as many connections"))
	assert.Equal(t, 8, limit.Held())
}

// TestNoFileDescriptorsLeft is logged, and the listener goes on when there are some again.
func TestNoFileDescriptorsLeft(t *testing.T) {
	var log lines
	in := &scripted{next: make(chan any, 100)}
	l := NewLimit(8, slog.New(slog.NewTextHandler(&log, nil))).Listen(in)
	in.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	in.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ECONNABORTED)}
	in.next <- "10.0.0.1"
	_, err := l.Accept()
	require.NoError(t, err)
	assert.Equal(t, 1, log.count("too many open files"))
	in.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EBADF)}
	_, err = l.Accept()
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, l.Close())
	in.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "it does not wait for descriptors after Close")
}

func TestUnixSocketIsOnePeer(t *testing.T) {
	from, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	limit := NewLimit(6, nil)
	l := limit.Listen(from)
	defer l.Close()
	for range 5 { // more than half and one
		c, err := net.Dial("unix", from.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		s, err := l.Accept()
		require.NoError(t, err)
		defer s.Close()
	}
	assert.Equal(t, 5, limit.Held())
}

func TestConnections(t *testing.T) {
	assert.Equal(t, 1024, Connections(1024, 1<<20))
	assert.Equal(t, 768, Connections(1024, 1024))
	assert.Equal(t, 100, Connections(1024, 200))
	assert.Equal(t, 10, Connections(10, 1024))
	assert.Equal(t, 1, Connections(10, 0))
	n, err := RaiseFiles()
	require.NoError(t, err)
	var l syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	assert.Equal(t, l.Max, l.Cur)
	assert.Equal(t, l.Cur, n)
}
