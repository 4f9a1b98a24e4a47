package identity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServersThatAreAccepted checks each acceptance against servers of every role and of several owners, by
// connections: a refused server gets no request.
func TestServersThatAreAccepted(t *testing.T) {
	dir := t.TempDir()
	servers := map[Identity]string{}
	for _, id := range []Identity{{Control, "m0"}, {Node, "ads"}, {Launcher, "ads"}, {Launcher, "ads.gpu-1"},
		{Launcher, "ads-2"}, {Launcher, "news.ads"}} {
		conf, err := issued(t, dir, id, "127.0.0.1").Server()
		require.NoError(t, err)
		l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
		require.NoError(t, err)
		servers[id] = serve(t, l, conf)
	}
	caller := issued(t, dir, Identity{Launcher, "ads.gpu-0"})
	control, nodes := map[Identity]bool{{Control, "m0"}: true}, map[Identity]bool{{Node, "ads"}: true}
	service := map[Identity]bool{{Control, "m0"}: true, {Node, "ads"}: true}
	workers := map[Identity]bool{{Launcher, "ads"}: true, {Launcher, "ads.gpu-1"}: true}
	both := map[Identity]bool{}
	for _, set := range []map[Identity]bool{nodes, workers} {
		for id := range set {
			both[id] = true
		}
	}
	for name, c := range map[string]struct {
		accept Acceptance
		want   map[Identity]bool
	}{
		"the service":              {AcceptService, service},
		"the control plane":        {AcceptControl, control},
		"nodes":                    {AcceptNode, nodes},
		"workers of ads":           {AcceptOwned("ads"), workers},
		"workers of no owner":      {AcceptOwned(""), nil},
		"makers, for a launcher":   {AcceptMakers(Identity{Launcher, "ads.gpu-0"}), both},
		"makers, for an operator":  {AcceptMakers(Identity{Operator, "ads"}), nodes},
		"makers, without identity": {AcceptMakers(Identity{}), nodes},
	} {
		client, err := HTTPClientOf(caller, c.accept)
		require.NoError(t, err)
		for id, url := range servers {
			r, err := client.Get(url)
			if c.want[id] {
				if assert.NoError(t, err, "%s: %s", name, id) {
					assert.Equal(t, 200, r.StatusCode)
					assert.NoError(t, r.Body.Close())
				}
				continue
			}
			assert.ErrorIs(t, err, ErrPeer, "%s: %s", name, id)
			if err == nil {
				assert.NoError(t, r.Body.Close())
			}
		}
		client.CloseIdleConnections()
	}
}

// TestCertificatesOfServers checks which certificates a server can use: those of launchers only with a host, and those
// of operators never; and that Verify says so.
func TestCertificatesOfServers(t *testing.T) {
	dir := t.TempDir()
	named := issued(t, dir, Identity{Launcher, "ads.gpu-0"}, "gpu-0.example.net", "10.0.0.7")
	bare := issued(t, dir, Identity{Launcher, "ads"})
	operator := issued(t, dir, Identity{Operator, "ann"}, "127.0.0.1")
	for _, c := range []struct {
		o    Options
		want []string
	}{{named, []string{"gpu-0.example.net", "10.0.0.7"}}, {bare, nil}, {operator, nil}, {Options{}, nil}} {
		hosts, err := c.o.Hosts()
		require.NoError(t, err)
		assert.Equal(t, c.want, hosts)
	}
	_, err := Options{Cert: "no-such.pem", Key: "k", CA: "ca"}.Hosts()
	require.ErrorIs(t, err, ErrCertificate)

	now := time.Now()
	assert.Empty(t, named.Verify(Node, []string{"10.0.0.7"}, now, Launcher))
	problems := named.Verify(Node, nil, now)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "--role node")
	problems = bare.Verify(Node, nil, now, Launcher)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "not for a server: issue one with --host")
}

// TestOwn checks the identity in a certificate, and its owner.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	id, err := Options{}.Own()
	require.NoError(t, err)
	assert.Zero(t, id)
	_, err = Options{Cert: "no-such.pem", Key: "k", CA: "ca"}.Own()
	require.ErrorIs(t, err, ErrCertificate)
	for want, owner := range map[Identity]string{{Launcher, "ads.gpu-0"}: "ads", {Launcher, "ads"}: "ads",
		{Launcher, "ads-2.x"}: "ads-2", {Operator, "ann"}: "", {Node, "ads"}: "", {Control, "ads"}: ""} {
		id, err := issued(t, dir, want, "h").Own()
		require.NoError(t, err)
		assert.Equal(t, want, id)
		assert.Equal(t, owner, id.Owner(), "%s", want)
	}
}
