package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/millrace/millrace/host/identity"
)

// issuer issues identities of one authority, for this machine.
func issuer(t *testing.T) func(role identity.Role, name string) identity.Options {
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	return func(role identity.Role, name string) identity.Options {
		path := filepath.Join(dir, string(role)+"-"+name)
		files := identity.Options{Cert: path + ".pem", Key: path + ".key",
			CA: filepath.Join(dir, identity.AuthorityCert)}
		require.NoError(t, identity.Issue(dir, identity.Request{
			Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}}, files.Cert, files.Key))
		return files
	}
}

// secured returns the options of a member with an identity.
func secured(o Options, files identity.Options) Options {
	o.Cert, o.Key, o.CA = files.Cert, files.Key, files.CA
	return o
}

// freeSecureURL returns a peer URL with TLS that was free a moment ago.
func freeSecureURL(t *testing.T) string { return strings.Replace(freeURL(t), "http:", "https:", 1) }

// lockedBuffer is a buffer that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestOnlyMembersSpeakWithMembers: a member with a certificate of the role control joins, and what one member commits
// the other member has. Certificates of the same authority for other roles are refused at the members' port, and the
// refusal says what to do.
func TestOnlyMembersSpeakWithMembers(t *testing.T) {
	t.Parallel()
	issue := issuer(t)
	var log lockedBuffer
	at := freeSecureURL(t)
	first := open(t, secured(Options{Data: t.TempDir(), Name: "m0", Peers: []string{"m0=" + at},
		Logger: slog.New(slog.NewTextHandler(&log, nil))}, issue(identity.Control, "m0")))
	defer func() { assert.NoError(t, first.Close()) }()

	second := freeSecureURL(t)
	_, err := first.AddMember(patient(t), second)
	require.NoError(t, err)
	next := open(t, secured(joining(t, first, "m1", second), issue(identity.Control, "m1")))
	defer func() { assert.NoError(t, next.Close()) }()
	promoted(t, first, "m1")
	term, err := next.Campaign(patient(t), "one")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("k", []byte("shared"))))
	value, err := first.client.Get(patient(t), first.key("k"))
	require.NoError(t, err)
	assert.Equal(t, "shared", string(value.Kvs[0].Value))

	get := func(files identity.Options, path string) (status int, body string) {
		client, err := identity.HTTPClient(files)
		require.NoError(t, err)
		defer client.CloseIdleConnections()
		resp, err := client.Get(at + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	paths := []string{"/members", "/version", "/raft", "/raft/stream/message/1", "/leases"}
	control := issue(identity.Control, "m2")
	for _, path := range paths {
		status, body := get(control, path)
		assert.NotEqual(t, http.StatusUnauthorized, status, "%s: %s", path, body)
	}
	status, body := get(control, "/members")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, second)
	for _, role := range []identity.Role{identity.Node, identity.Launcher, identity.Operator} {
		files := issue(role, "other")
		for _, path := range paths {
			status, body := get(files, path)
			assert.Equal(t, http.StatusUnauthorized, status, "%s: %s", role, path)
			assert.Contains(t, body, "millrace pki issue --role control", "%s: %s", role, path)
		}
	}
	assert.Contains(t, log.String(), "a caller of etcd was refused")
	assert.Contains(t, log.String(), "node/other may not do this")

	foreign, err := identity.HTTPClient(issuer(t)(identity.Control, "m2"))
	require.NoError(t, err)
	_, err = foreign.Get(at + "/members") //nolint:bodyclose // there is no response
	assert.ErrorContains(t, err, "certificate", "a control certificate of another authority")
}

// TestSecureMembersStartTogether: three members that form a new cluster over TLS elect a leader, also when all start at
// the same time.
func TestSecureMembersStartTogether(t *testing.T) {
	t.Parallel()
	issue := issuer(t)
	peers := make([]string, 3)
	for i := range peers {
		peers[i] = fmt.Sprintf("m%d=%s", i, freeSecureURL(t))
	}
	members := make([]*Store, len(peers))
	var wg sync.WaitGroup
	for i := range members {
		name := fmt.Sprintf("m%d", i)
		o := secured(Options{Data: t.TempDir(), Name: name, Peers: peers}, issue(identity.Control, name))
		wg.Go(func() {
			s, err := Open(patient(t), quick(o))
			if assert.NoError(t, err) {
				members[i] = s
			}
		})
	}
	wg.Wait()
	for _, m := range members {
		require.NotNil(t, m)
		defer func() { assert.NoError(t, m.Close()) }()
	}
	term, err := members[0].Campaign(patient(t), "zero")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("k", []byte("shared"))))
}

// TestAMemberNeedsTheRoleControl: a member with a certificate of another role does not start, and its error says which
// certificate it needs.
func TestAMemberNeedsTheRoleControl(t *testing.T) {
	t.Parallel()
	issue := issuer(t)
	for _, role := range []identity.Role{identity.Node, identity.Launcher, identity.Operator} {
		for name, o := range map[string]Options{
			"peers":   {Data: t.TempDir(), Name: "m0", Peers: []string{"m0=" + freeSecureURL(t)}},
			"clients": {Data: t.TempDir(), Name: "m0", ClientURL: freeSecureURL(t)},
		} {
			_, err := Open(patient(t), quick(secured(o, issue(role, name))))
			assert.ErrorIs(t, err, identity.ErrPeer, "%s %s", role, name)
			assert.ErrorContains(t, err, "millrace pki issue --role control --name m0 --host HOST", "%s %s", role, name)
		}
	}
	_, err := Open(patient(t), quick(Options{Data: t.TempDir(), ClientURL: "https://127.0.0.1:0"}))
	assert.ErrorContains(t, err, "give a certificate")
}

// TestOnlyControlCertificatesAreClients: at an address with TLS, etcd serves clients that show a certificate of the
// role control, and refuses certificates of the same authority for other roles.
func TestOnlyControlCertificatesAreClients(t *testing.T) {
	t.Parallel()
	issue := issuer(t)
	var log lockedBuffer
	at := freeSecureURL(t)
	s := open(t, secured(Options{Data: t.TempDir(), ClientURL: at, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		issue(identity.Control, "m0")))
	defer func() { assert.NoError(t, s.Close()) }()

	ask := func(role identity.Role, limit time.Duration) error {
		files := issue(role, "client")
		conf, err := transport.TLSInfo{CertFile: files.Cert, KeyFile: files.Key, TrustedCAFile: files.CA}.ClientConfig()
		require.NoError(t, err)
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, TLS: conf, Logger: zapLogger(s.logger)})
		require.NoError(t, err)
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		_, err = client.Put(ctx, "k", string(role))
		return err
	}
	require.NoError(t, ask(identity.Control, 30*time.Second))
	// A client of etcd repeats a refused connection until its own deadline.
	for _, role := range []identity.Role{identity.Node, identity.Launcher, identity.Operator} {
		require.Error(t, ask(role, 300*time.Millisecond), role)
	}
	// On a busy machine a client may give up before the member has seen its certificate.
	for limit := 300 * time.Millisecond; !strings.Contains(log.String(), "launcher/client may not do this"); limit *= 2 {
		require.Less(t, limit, time.Minute)
		require.Error(t, ask(identity.Launcher, limit))
	}
	value, err := s.client.Get(patient(t), "k")
	require.NoError(t, err)
	assert.Equal(t, "control", string(value.Kvs[0].Value))
}
