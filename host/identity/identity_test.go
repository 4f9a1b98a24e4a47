package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// issued makes an authority and a certificate of it.
func issued(t *testing.T, dir string, id Identity, hosts ...string) Options {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, AuthorityCert)); err != nil {
		require.NoError(t, InitAuthority(dir, "test"))
	}
	o := Options{
		Cert: filepath.Join(dir, string(id.Role)+"-"+id.Name+".pem"),
		Key:  filepath.Join(dir, string(id.Role)+"-"+id.Name+".key"),
		CA:   filepath.Join(dir, AuthorityCert),
	}
	require.NoError(t, Issue(dir, Request{Identity: id, Hosts: hosts}, o.Cert, o.Key))
	return o
}

// serve answers with the peer's identity, or 403 to a peer whose role is not launcher.
func serve(t *testing.T, l net.Listener, conf *tls.Config) string {
	t.Helper()
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := Require(r.TLS, Launcher); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			if r.TLS == nil {
				fmt.Fprint(w, "clear")
				return
			}
			id, _ := Peer(r.TLS)
			fmt.Fprint(w, id)
		}),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	t.Cleanup(func() { _ = s.Close() })
	if conf != nil {
		go func() { _ = s.Serve(tls.NewListener(l, conf)) }()
		return "https://" + l.Addr().String()
	}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String()
}

func get(t *testing.T, o Options, where string) (string, int, error) {
	t.Helper()
	c, err := HTTPClient(o)
	require.NoError(t, err)
	defer c.CloseIdleConnections()
	base, err := BaseURL(where)
	require.NoError(t, err)
	r, err := c.Get(base + "/")
	if err != nil {
		return "", 0, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b), r.StatusCode, nil
}

func TestMutualTLS(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	server := issued(t, dir, Identity{Node, "node0"}, "127.0.0.1")
	conf, err := server.Server()
	require.NoError(t, err)
	l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
	require.NoError(t, err)
	where := serve(t, l, conf)

	t.Run("a launcher", func(t *testing.T) {
		body, code, err := get(t, issued(t, dir, Identity{Launcher, "trainer-7"}), where)
		require.NoError(t, err)
		assert.Equal(t, 200, code)
		assert.Equal(t, "launcher/trainer-7", body)
	})
	t.Run("another role", func(t *testing.T) {
		body, code, err := get(t, issued(t, dir, Identity{Operator, "ann"}), where)
		require.NoError(t, err)
		assert.Equal(t, 403, code)
		assert.Contains(t, body, "operator/ann may not do this")
	})
	t.Run("no certificate", func(t *testing.T) {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(server.CA)
		require.NoError(t, err)
		pool.AppendCertsFromPEM(pem)
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
			MinVersion: tls.VersionTLS13}}}
		_, err = c.Get(where)
		require.ErrorContains(t, err, "certificate required")
	})
	t.Run("of another authority", func(t *testing.T) {
		o := issued(t, other, Identity{Launcher, "stranger"})
		_, _, err := get(t, o, where)
		require.ErrorContains(t, err, "unknown authority", "the caller refuses the server")
		o.CA = server.CA
		_, _, err = get(t, o, where)
		require.ErrorContains(t, err, "unknown certificate authority", "the server refuses the caller")
	})
	t.Run("a server called by another name", func(t *testing.T) {
		o := issued(t, dir, Identity{Node, "node1"}, "elsewhere.example")
		conf, err := o.Server()
		require.NoError(t, err)
		l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
		require.NoError(t, err)
		_, _, err = get(t, issued(t, dir, Identity{Launcher, "b"}), serve(t, l, conf))
		require.ErrorContains(t, err, "127.0.0.1")
	})
	t.Run("a launcher does not pass as a server", func(t *testing.T) {
		o := issued(t, dir, Identity{Launcher, "c"}, "127.0.0.1")
		conf, err := o.Server()
		require.NoError(t, err)
		l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
		require.NoError(t, err)
		_, _, err = get(t, issued(t, dir, Identity{Launcher, "d"}), serve(t, l, conf))
		require.Error(t, err)
	})
}

// TestRotation replaces a certificate under a server that goes on.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	server := issued(t, dir, Identity{Node, "old"}, "127.0.0.1")
	conf, err := server.Server()
	require.NoError(t, err)
	l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
	require.NoError(t, err)
	where := serve(t, l, conf)
	client := issued(t, dir, Identity{Launcher, "l"})
	name := func() string {
		cc, err := client.Client()
		require.NoError(t, err)
		cc.ServerName = "127.0.0.1"
		c, err := tls.Dial("tcp", where[len("https://"):], cc)
		require.NoError(t, err)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	require.Equal(t, "node/old", name())
	fresh := issued(t, dir, Identity{Node, "new"}, "127.0.0.1")
	require.NoError(t, os.Rename(fresh.Key, server.Key))
	require.NoError(t, os.WriteFile(server.Cert, []byte("half a file"), 0o644))
	require.Equal(t, "node/old", name(), "while it is being replaced the old one serves")
	require.NoError(t, os.Rename(fresh.Cert, server.Cert))
	require.Equal(t, "node/new", name())
}

func TestIssueRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(n string) string { return filepath.Join(dir, n) }
	r := Request{Identity: Identity{Launcher, "a"}}
	require.ErrorIs(t, Issue(dir, r, path("a.pem"), path("a.key")), os.ErrNotExist, "no authority yet")
	require.NoError(t, InitAuthority(dir, "test"))
	require.ErrorIs(t, InitAuthority(dir, "test"), os.ErrExist)
	require.NoError(t, Issue(dir, r, path("a.pem"), path("a.key")))
	require.ErrorIs(t, Issue(dir, r, path("a.pem"), path("a.key")), os.ErrExist)
	require.ErrorIs(t, Issue(dir, r, path("a.pem"), path("b.key")), os.ErrExist)
	require.NoFileExists(t, path("b.key"), "a key without its certificate")
	for _, bad := range []Identity{{"admin", "a"}, {Launcher, ""}, {Launcher, "A"}, {Launcher, "a/b"}, {Launcher, "-a"},
		{Launcher, string(make([]byte, 64))}} {
		require.Error(t, Issue(dir, Request{Identity: bad, Hosts: []string{"h"}}, path("x.pem"), path("x.key")), "%+v",
			bad)
	}
	require.ErrorContains(t, Issue(dir, Request{Identity: Identity{Node, "n"}}, path("x.pem"), path("x.key")), "--host")
	for _, bad := range []string{"", "a b", "a/b", "10.0.0.7:7070", "https://node0", "[::1]", "a..b", "-a", "a-", ".a",
		"a.*.b", "node\x000"} {
		require.ErrorContains(t,
			Issue(dir, Request{Identity: Identity{Node, "n"}, Hosts: []string{"h", bad}}, path("x.pem"),
				path("x.key")), "without port", "%q", bad)
	}
	require.NoFileExists(t, path("x.key"))
	require.NoError(t, Issue(dir,
		Request{Identity: Identity{Node, "n"},
			Hosts: []string{"h", "10.0.0.7", "::1", "a-b.Example.net", "*.example.net",
				"a_b"}}, path("x.pem"), path("x.key")))
	info, err := os.Stat(path("a.key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestOf(t *testing.T) {
	uri := func(s string) *url.URL {
		u, err := url.Parse(s)
		require.NoError(t, err)
		return u
	}
	for s, want := range map[string]Identity{
		"spiffe://millrace/node/n0": {Node, "n0"},
		"spiffe://other/node/n0":    {}, "spiffe://millrace/node": {}, "spiffe://millrace/root/n0": {},
		"spiffe://millrace/node/a/b": {},
		"https://millrace/node/n0":   {},
	} {
		id, err := Of(&x509.Certificate{URIs: []*url.URL{uri(s)}})
		if want == (Identity{}) {
			require.ErrorIs(t, err, ErrPeer, s)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, id)
	}
	two := &x509.Certificate{URIs: []*url.URL{uri("spiffe://millrace/node/a"), uri("spiffe://millrace/operator/a")}}
	_, err := Of(two)
	require.ErrorIs(t, err, ErrPeer, "two identities are none")
}

func TestOptions(t *testing.T) {
	c, err := Options{}.Server()
	require.NoError(t, err)
	require.Nil(t, c)
	_, err = Options{Cert: "x"}.Server()
	require.ErrorIs(t, err, ErrCertificate)
	_, err = Options{Cert: "x", Key: "y", CA: "z"}.Client()
	require.ErrorIs(t, err, ErrCertificate)
	dir := t.TempDir()
	o := issued(t, dir, Identity{Launcher, "l"})
	o.Cert = filepath.Join(dir, AuthorityCert)
	o.Key = filepath.Join(dir, AuthorityKey)
	_, err = o.Client()
	require.ErrorContains(t, err, "millrace pki issue", "an authority's own certificate is not an identity")
}

func TestListen(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		addr, trusted string
		secure, ok    bool
	}{
		{"127.0.0.1:0", "", false, true}, {"localhost:0", "", false, true}, {"[::1]:0", "", false, true},
		{"0.0.0.0:0", "", false, false}, {":0", "", false, false}, {"0.0.0.0:0", "", true, true},
		{"0.0.0.0:0", "10.0.0.0/8", false, false}, {"0.0.0.0:0", "0.0.0.0/0", false, true},
		{"10.1.2.3:0", "192.168.0.0/16", false, false}, {"10.1.2.3:0", "nonsense", false, false},
		{"127.0.0.1", "", false, false},
	} {
		l, err := Listen(ctx, c.addr, c.secure, c.trusted)
		if err != nil && c.ok && c.addr[0] == '[' {
			continue // a machine without IPv6
		}
		assert.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
		if err == nil {
			require.NoError(t, l.Close())
		}
	}
	_, err := Listen(ctx, "0.0.0.0:0", false, "")
	require.ErrorIs(t, err, ErrInsecure)
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(context.Background(), "unix:"+path, false, "")
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o660), st.Mode().Perm(), "for its owner and the owner's group, whatever the umask")
	raw, err := bindUnix(t.Context(), path+".raw")
	require.NoError(t, err)
	st, err = os.Stat(path + ".raw")
	require.NoError(t, err)
	assert.Zero(t, st.Mode().Perm()&^0o660, "from the first moment on")
	require.NoError(t, raw.Close())
	serve(t, l, nil)
	body, _, err := get(t, Options{}, "unix:"+path)
	require.NoError(t, err)
	assert.Equal(t, "clear", body)
	_, err = Listen(t.Context(), "unix:"+path, false, "")
	require.ErrorContains(t, err, "somebody serves there already")

	// The socket of a server that was killed stays in the file system.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
	l, err = Listen(t.Context(), "unix:"+path, false, "")
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// TestUnixSocketsMode checks that the owner of a socket and its group may connect, whatever the umask was.
func TestUnixSocketsMode(t *testing.T) {
	for _, mask := range []int{0, 0o22, 0o77} {
		path := filepath.Join(t.TempDir(), "s")
		before := syscall.Umask(mask)
		l, err := Listen(t.Context(), "unix:"+path, false, "")
		syscall.Umask(before)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o660), info.Mode().Perm(), "umask %#o", mask)
		require.NoError(t, l.Close())
		assert.NoFileExists(t, path)
	}
}

// TestUnixSocketTakesNoFilesPlace: connecting to a file that is not a socket is refused as one to a dead server's
// socket is.
func TestUnixSocketTakesNoFilesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := Listen(t.Context(), "unix:"+path, false, "")
	require.ErrorContains(t, err, "not a socket")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(b))
}

func TestBaseURL(t *testing.T) {
	for _, bad := range []string{"", "unix:", "127.0.0.1:80", "ftp://h", "http://h/path", "http://", "http://h?x",
		"http://h#x", "http://user@h", "http://2f72756e2f646f636b65722e736f636b.unix", "http://169.254.169.254",
		"https://[fe80::1%25eth0]:1"} {
		_, err := BaseURL(bad)
		assert.Error(t, err, bad)
	}
	u, err := BaseURL("https://h:1/")
	require.NoError(t, err)
	assert.Equal(t, "https://h:1", u)
}

// TestLinkLocalIsNotCalled: the dialer refuses the address, whatever named it.
func TestLinkLocalIsNotCalled(t *testing.T) {
	c, err := HTTPClient(Options{})
	require.NoError(t, err)
	_, err = c.Get("http://169.254.169.254/latest/meta-data")
	require.ErrorContains(t, err, "is a link-local address")
}

func TestOfThisMachine(t *testing.T) {
	for raw, want := range map[string]bool{
		"unix:/run/x": true, "http://127.0.0.1:80": true, "https://[::1]": true, "http://[::ffff:127.0.0.2]:1": true,
		"http://localhost:1": true, "http://0.0.0.0:1": true, "http://10.0.0.1:80": false, "https://node-0:80": false,
		"://": false,
	} {
		assert.Equal(t, want, OfThisMachine(raw), raw)
	}
}
