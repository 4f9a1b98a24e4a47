package control

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// connBetween is a connection with two addresses and nothing else.
type connBetween struct {
	net.Conn
	local, remote net.Addr
}

func (c connBetween) LocalAddr() net.Addr  { return c.local }
func (c connBetween) RemoteAddr() net.Addr { return c.remote }

func TestFromThisMachine(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	socket := &net.UnixAddr{Net: "unix"}
	for _, c := range []struct {
		local, remote net.Addr
		want          bool
	}{
		{at("127.0.0.1"), at("127.0.0.1"), true}, {at("::1"), at("::1"), true}, {socket, socket, true},
		{at("10.0.0.1"), at("10.0.0.1"), true}, {at("10.0.0.1"), at("::ffff:10.0.0.1"), true},
		{at("10.0.0.1"), at("10.0.0.2"), false}, {at("127.0.0.1"), at("10.0.0.2"), false},
	} {
		assert.Equal(t, c.want, fromThisMachine(connBetween{local: c.local, remote: c.remote}), "%v", c)
	}
}

// TestANodeOfAnotherMachine: the leader does not call a loopback address or a unix socket of its own machine for it.
func TestANodeOfAnotherMachine(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	stop := n.beats(t, c)
	await(t, c, "n")
	stop()
	l := s.leading.Load()
	assert.NotEmpty(t, l.reachedAt("n").urls)
	l.mu.Lock()
	l.mu.nearby["n"] = false
	l.mu.fleet.Status("n").Urls = []string{"unix:/run/docker.sock", "http://127.0.0.1:2379", "https://10.0.0.1:7300"}
	l.mu.Unlock()
	assert.Equal(t, []string{"https://10.0.0.1:7300"}, l.reachedAt("n").urls)
	l.mu.Lock()
	l.mu.fleet.Status("n").Urls = []string{"unix:/run/docker.sock"}
	l.mu.Unlock()
	err := l.calls.drain(t.Context(), "n", true)
	require.ErrorContains(t, err, "have it listen on an address of its network")
}
