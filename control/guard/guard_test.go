package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

func TestRates(t *testing.T) {
	r := newRates(10)
	now := time.Now()
	for range 10 {
		assert.True(t, r.allow("a", now))
	}
	assert.False(t, r.allow("a", now))
	assert.True(t, r.allow("b", now))
	assert.True(t, r.allow("a", now.Add(time.Second)))
	for i := range 2 * maxPeers {
		r.allow(fmt.Sprint(i), now.Add(time.Second))
	}
	assert.LessOrEqual(t, len(r.peers), maxPeers+1)
}

// TestEveryMethodHasItsRoles: a method that is not listed is an operator's, and every listed method exists.
func TestEveryMethodHasItsRoles(t *testing.T) {
	service := reflect.TypeFor[apiv1connect.ControlHandler]()
	methods := map[string]bool{}
	for i := range service.NumMethod() {
		methods[service.Method(i).Name] = true
	}
	for name, roles := range allowed {
		assert.True(t, methods[name], name)
		assert.NotEmpty(t, roles, name)
	}
	for _, name := range []string{"AddMember", "RemoveMember", "SetCopies"} {
		assert.True(t, methods[name])
		assert.NotContains(t, allowed, name)
	}
}

// asPeer returns a request over TLS by the identity that a certificate names.
func asPeer(role identity.Role, name, path string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header.Set("Content-Type", "application/json")
	u := &url.URL{Scheme: "spiffe", Host: "millrace", Path: "/" + string(role) + "/" + name}
	cert := []*x509.Certificate{{URIs: []*url.URL{u}}}
	r.TLS = &tls.ConnectionState{HandshakeComplete: true, PeerCertificates: cert,
		VerifiedChains: [][]*x509.Certificate{cert}}
	return r
}

func TestRolesBeforeTheCallIsRead(t *testing.T) {
	var who identity.Identity
	g := New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = Peer(r.Context()) }), true, 100)
	for _, c := range []struct {
		role   identity.Role
		method string
		status int
	}{
		{identity.Node, "Heartbeat", http.StatusOK},
		{identity.Launcher, "Heartbeat", http.StatusOK},
		{identity.Operator, "Heartbeat", http.StatusForbidden},
		{identity.Launcher, "Locate", http.StatusOK},
		{identity.Control, "Locate", http.StatusForbidden},
		{identity.Launcher, "Lease", http.StatusOK},
		{identity.Node, "Lease", http.StatusForbidden},
		{identity.Control, "ListMembers", http.StatusOK},
		{identity.Launcher, "PutVocabulary", http.StatusOK},
		{identity.Operator, "PutVocabulary", http.StatusOK},
		{identity.Node, "PutVocabulary", http.StatusForbidden},
		{identity.Node, "ReadVocabulary", http.StatusOK},
		{identity.Launcher, "ReadVocabulary", http.StatusOK},
		{identity.Control, "ShareVocabularies", http.StatusOK},
		{identity.Node, "ShareVocabularies", http.StatusForbidden},
		{identity.Control, "RemoveMember", http.StatusForbidden},
		{identity.Operator, "RemoveMember", http.StatusOK},
		{identity.Operator, "NotThereYet", http.StatusOK},
		{identity.Launcher, "NotThereYet", http.StatusForbidden},
	} {
		who = identity.Identity{}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, asPeer(c.role, "x", "/millrace.v1.Control/"+c.method))
		require.Equal(t, c.status, w.Code, "%s %s: %s", c.role, c.method, w.Body)
		if c.status == http.StatusOK {
			assert.Equal(t, identity.Identity{Role: c.role, Name: "x"}, who)
		}
	}
}

func TestJobsHaveOwners(t *testing.T) {
	as := func(role identity.Role, name string) context.Context {
		return context.WithValue(t.Context(), peerKey{}, identity.Identity{Role: role, Name: name})
	}
	assert.NoError(t, MayUse(as(identity.Launcher, "ads.host-1"), "ads"))
	assert.NoError(t, MayUse(as(identity.Operator, "ann"), "ads"))
	assert.NoError(t, MayUse(as(identity.Launcher, "news"), ""))
	assert.NoError(t, MayUse(t.Context(), "ads"), "nobody is asked who they are")
	err := MayUse(as(identity.Launcher, "news"), "ads")
	assert.ErrorIs(t, err, ErrOwner)
	assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err))
}

// TestWhoMayUseAndEndAJob: the table of docs/operations.md, from both sides.
func TestWhoMayUseAndEndAJob(t *testing.T) {
	as := func(role identity.Role, name string) context.Context {
		return context.WithValue(t.Context(), peerKey{}, identity.Identity{Role: role, Name: name})
	}
	for _, c := range []struct {
		who      context.Context
		owner    string
		use, end bool
	}{
		{as(identity.Launcher, "ads"), "ads", true, true},
		{as(identity.Launcher, "ads.host-3"), "ads", true, true},
		{as(identity.Launcher, "ads-2"), "ads", false, false},
		{as(identity.Launcher, "news"), "ads", false, false},
		{as(identity.Launcher, "news"), "", true, false},
		{as(identity.Operator, "ann"), "ads", true, true},
		{as(identity.Operator, "ann"), "", true, true},
		{t.Context(), "ads", true, true}, // in clear no caller is asked for its identity
		{t.Context(), "", true, true},
	} {
		for what, err := range map[string]error{"use": MayUse(c.who, c.owner), "end": MayEnd(c.who, c.owner)} {
			if may := map[string]bool{"use": c.use, "end": c.end}[what]; may {
				assert.NoError(t, err, "%s %q as %v", what, c.owner, Peer(c.who))
			} else {
				assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%s %q as %v", what, c.owner,
					Peer(c.who))
			}
		}
	}
	assert.ErrorIs(t, MayEnd(as(identity.Launcher, "news"), ""), ErrOperators)
}

// TestWhoMaySubmitForWhom: an operator may submit for every owner whose name is valid, a launcher only for itself.
func TestWhoMaySubmitForWhom(t *testing.T) {
	as := func(role identity.Role, name string) context.Context {
		return context.WithValue(t.Context(), peerKey{}, identity.Identity{Role: role, Name: name})
	}
	for _, c := range []struct {
		who         context.Context
		asked, want string
		code        connect.Code // 0: none
	}{
		{who: as(identity.Launcher, "ads.host-3"), want: "ads"},
		{who: as(identity.Launcher, "ads.host-3"), asked: "ads", want: "ads"},
		{who: as(identity.Launcher, "ads.host-3"), asked: "news", code: connect.CodePermissionDenied},
		{who: as(identity.Operator, "ann")},
		{who: as(identity.Operator, "ann"), asked: "ads", want: "ads"},
		{who: as(identity.Operator, "ann"), asked: "ads.host-3", code: connect.CodeInvalidArgument},
		{who: as(identity.Operator, "ann"), asked: "Ads", code: connect.CodeInvalidArgument},
		{who: t.Context(), asked: "ads", want: "ads"},
		{who: t.Context()},
	} {
		got, err := OwnerFor(c.who, c.asked)
		assert.Equal(t, c.want, got)
		if c.code == 0 {
			assert.NoError(t, err)
		} else {
			assert.Equal(t, c.code, connect.CodeOf(err), "%v: %v", Peer(c.who), err)
		}
	}
}

func TestOnLoopback(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	status := func(h http.Handler, r *http.Request) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	plain := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	assert.Equal(t, http.StatusForbidden, status(OnLoopback(ok), plain), "httptest's callers are at 192.0.2.1")
	plain.RemoteAddr = "127.0.0.1:7"
	assert.Equal(t, http.StatusOK, status(OnLoopback(ok), plain))
}
