package remote

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
)

// TestFirstContact: a wrong address is an error at once, and an address on which no process listens is an error when
// Contact is over; Patience, which would outlive the test, is for a control plane that has answered.
func TestFirstContact(t *testing.T) {
	dial := func(o Options) error {
		o.Patience = time.Hour
		c, err := Dial(o)
		require.NoError(t, err)
		_, err = c.List(t.Context())
		require.NoError(t, c.Close())
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	require.ErrorIs(t, dial(Options{Control: []string{at}, Contact: time.Millisecond}), ErrUnreachable)

	var mismatch *identity.MismatchError
	err = dial(Options{Control: []string{"https://127.0.0.1:1"}})
	require.ErrorAs(t, err, &mismatch)
	require.ErrorIs(t, err, ErrUnreachable)
	require.Equal(t, identity.NoIdentity, mismatch.Cause)

	_, err = Dial(Options{Control: []string{at}, Contact: -1})
	require.ErrorIs(t, err, ErrOptions)
}

// TestANodeIsNotTheControlPlane calls a server that has a node's certificate for the host name of the control plane: it
// gets no request, and the error says what it is.
func TestANodeIsNotTheControlPlane(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	issue := func(role identity.Role) identity.Options {
		o := identity.Options{Cert: filepath.Join(dir, string(role)+".pem"), Key: filepath.Join(dir, string(role)+".key"),
			CA: filepath.Join(dir, identity.AuthorityCert)}
		require.NoError(t, identity.Issue(dir, identity.Request{
			Identity: identity.Identity{Role: role, Name: "x"}, Hosts: []string{"127.0.0.1"}}, o.Cert, o.Key))
		return o
	}
	conf, err := issue(identity.Node).Server()
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the request %s came", r.URL)
	}))
	server.TLS, server.Config.ErrorLog = conf, log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c, err := Dial(Options{Control: []string{server.URL}, Identity: issue(identity.Launcher), Patience: 10 * time.Second})
	require.NoError(t, err)
	_, err = c.List(t.Context())
	require.NoError(t, c.Close())
	var mismatch *identity.MismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, identity.WrongRole, mismatch.Cause)
	require.ErrorContains(t, err, "node/x is not a member of the control plane")
}

// TestPatienceOnceMet: a control plane that has answered is waited for as long as ever.
func TestPatienceOnceMet(t *testing.T) {
	c, err := Dial(Options{Control: []string{"http://127.0.0.1:1"}, Patience: time.Hour, Contact: time.Second})
	require.NoError(t, err)
	require.Equal(t, time.Second, c.members.Patience())
	c.noteAnswer()
	require.Equal(t, time.Hour, c.members.Patience())
}
