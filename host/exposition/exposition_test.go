package exposition

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
)

// read reads metrics as a role does over TLS; "" is without.
func read(r prometheus.Gatherer, role identity.Role) (int, string) {
	q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if role != "" {
		u := &url.URL{Scheme: "spiffe", Host: "millrace", Path: "/" + string(role) + "/x"}
		cert := []*x509.Certificate{{URIs: []*url.URL{u}}}
		q.TLS = &tls.ConnectionState{HandshakeComplete: true, PeerCertificates: cert,
			VerifiedChains: [][]*x509.Certificate{cert}}
	}
	w := httptest.NewRecorder()
	Handler(r).ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

// TestRegister checks that two daemons of a process share the metrics of the process, and that certificates that end or
// disappear are seen.
func TestRegister(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	o := identity.Options{Cert: filepath.Join(dir, "n.pem"), Key: filepath.Join(dir, "n.key"),
		CA: filepath.Join(dir, identity.AuthorityCert)}
	require.NoError(t, identity.Issue(dir,
		identity.Request{Identity: identity.Identity{Role: identity.Launcher, Name: "l"}}, o.Cert, o.Key))
	r := prometheus.NewRegistry()
	unregister, err := Register(r, Options{Version: "1.2.3", Identity: o})
	require.NoError(t, err)
	again, err := Register(r, Options{Version: "1.2.3"})
	require.NoError(t, err)
	_, said := read(r, "")
	for _, want := range []string{
		`millrace_build_info{go="go`, `version="1.2.3"} 1`, "go_goroutines ", "process_open_fds ",
		`millrace_certificate_expiry_seconds{kind="own"} `, `millrace_certificate_expiry_seconds{kind="authority"} `,
		"millrace_certificates_readable 1",
	} {
		assert.Contains(t, said, want)
	}
	require.NoError(t, os.Remove(o.Cert))
	_, said = read(r, "")
	assert.Contains(t, said, "millrace_certificates_readable 0")
	assert.False(t, strings.Contains(said, "millrace_certificate_expiry_seconds{"))
	again()
	unregister()
	_, said = read(r, "")
	assert.Empty(t, said)
}

// TestReader is the one rule of who reads metrics.
func TestReader(t *testing.T) {
	r := prometheus.NewRegistry()
	for role, want := range map[identity.Role]int{
		"": http.StatusOK, identity.Operator: http.StatusOK, identity.Control: http.StatusOK,
		identity.Node: http.StatusOK, identity.Launcher: http.StatusForbidden,
	} {
		code, _ := read(r, role)
		assert.Equal(t, want, code, "%s", role)
	}
}
