package delivery

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestATicketIsItsHolders checks that a stolen ticket is worth nothing over TLS, which identifies the sender.
func TestATicketIsItsHolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	issue := func(role identity.Role, name string) identity.Options {
		o := identity.Options{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key"),
			CA: filepath.Join(dir, identity.AuthorityCert)}
		require.NoError(t, identity.Issue(dir,
			identity.Request{Identity: identity.Identity{Role: role, Name: name},
				Hosts: []string{"127.0.0.1"}}, o.Cert, o.Key))
		return o
	}
	as := func(role identity.Role, name string) *http.Client {
		c, err := identity.HTTPClient(issue(role, name))
		require.NoError(t, err)
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	verify := ticket.NewVerifier("n0", "i", time.Now)
	signer, err := ticket.NewSigner(1)
	require.NoError(t, err)
	now := float64(time.Now().Unix())
	verify.Learn(&apiv1.HeartbeatResponse{TicketKey: signer.Key(), TicketsRequired: true, ClockSeconds: now})
	node := issue(identity.Node, "n0")
	conf, err := node.Server()
	require.NoError(t, err)
	s := New(Options{Tickets: verify, Log: slog.New(slog.DiscardHandler)})
	q := query{job: dataset.Digest{1}, drive: "d0", until: 100}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := identity.Require(r.TLS, mayTake...)
		own, owner := q, ""
		if err == nil {
			owner, err = s.checkTicket(r, &own)
		}
		if err != nil {
			errorcode.Write(w, err)
			return
		}
		assert.EqualValues(t, 8, own.until, "nothing is made ahead past the lease")
		_, err = w.Write([]byte(owner))
		assert.NoError(t, err)
	})}
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	require.NoError(t, err)
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { assert.NoError(t, srv.Close()) })
	b, err := signer.Sign(&apiv1.Ticket{
		Node: "n0", Incarnation: "i", Drive: "d0", Digest: q.job[:], To: 8, Lease: 1, Job: "job-1",
		Holder: "launcher/ads.host-1", Owner: "launcher/ads", ExpiresSeconds: now + 600,
	})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		client *http.Client
		status int
	}{
		"the holder":               {as(identity.Launcher, "ads.host-1"), http.StatusOK},
		"the same on another host": {as(identity.Launcher, "ads.host-2"), http.StatusForbidden},
		"another launcher":         {as(identity.Launcher, "news"), http.StatusForbidden},
		"an operator":              {as(identity.Operator, "ann"), http.StatusForbidden},
		"a node":                   {as(identity.Node, "n1"), http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String(), nil)
		require.NoError(t, err)
		req.Header.Set(apiv1.TicketHeader, apiv1.EncodeTicket(b))
		resp, err := c.client.Do(req)
		require.NoError(t, err, name)
		assert.Equal(t, c.status, resp.StatusCode, name)
		require.NoError(t, resp.Body.Close())
	}
}
