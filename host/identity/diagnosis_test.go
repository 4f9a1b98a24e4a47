package identity

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// says serves the same text to every client, and closes the connection.
func says(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(text))
			_, _ = c.Read(make([]byte, 1024))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestDiagnose(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	server := issued(t, dir, Identity{Control, "m0"}, "127.0.0.1")
	good := issued(t, dir, Identity{Launcher, "trainer"})
	strange := issued(t, other, Identity{Launcher, "stranger"})
	secureAt := func(o Options) string {
		conf, err := o.Server()
		require.NoError(t, err)
		l, err := Listen(t.Context(), "127.0.0.1:0", true, "")
		require.NoError(t, err)
		return serve(t, l, conf)
	}
	secure := secureAt(server)
	address := secure[len("https://"):]
	l, err := Listen(t.Context(), "127.0.0.1:0", false, "")
	require.NoError(t, err)
	inClear := serve(t, l, nil)
	expired := func(dir string, id Identity, hosts ...string) Options {
		o := Options{Cert: filepath.Join(dir, "expired-"+id.Name+".pem"),
			Key: filepath.Join(dir, "expired-"+id.Name+".key"), CA: filepath.Join(dir, AuthorityCert)}
		require.NoError(t, Issue(dir, Request{Identity: id, Hosts: hosts, Lifetime: time.Nanosecond}, o.Cert, o.Key))
		return o
	}
	mixed := func(o Options, ca string) Options { o.CA = ca; return o }
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	for name, c := range map[string]struct {
		url  string
		o    Options
		want Cause
	}{
		"all is well":             {secure, good, 0},
		"all is well in inClear":  {inClear, Options{}, 0},
		"in inClear with a name":  {inClear, good, 0},
		"http to TLS":             {"http://" + address, Options{}, WantsTLS},
		"http to TLS with a name": {"http://" + address, good, WantsTLS},
		"https to inClear":        {"https://" + inClear[len("http://"):], good, WantsClear},
		"no certificate":          {secure, Options{}, NoIdentity},
		"a server of another":     {secure, strange, UnknownServer},
		"a caller of another":     {secure, mixed(strange, good.CA), UnknownCaller},
		"a node of this host":     {secureAt(issued(t, dir, Identity{Node, "n0"}, "127.0.0.1")), good, WrongRole},
		"another host":            {"https://localhost:" + port, good, WrongHost},
		"a server that has expired": {secureAt(expired(dir, Identity{Control, "old"}, "127.0.0.1")), good,
			ServerExpired},
		"a caller that has expired": {secure, expired(dir, Identity{Launcher, "old-trainer"}), CallerExpired},
		"SSH":                       {"http://" + says(t, "SSH-2.0-OpenSSH_9.2\r\n"), Options{}, NotHTTP},
		"SSH with TLS":              {"https://" + says(t, "SSH-2.0-OpenSSH_9.2\r\n"), good, NotHTTP},
		"an alert":                  {"http://" + says(t, "\x15\x03\x01\x00\x02\x02\x46"), Options{}, WantsTLS},
		"closes at once":            {"http://" + says(t, ""), Options{}, 0},
		"nobody is there":           {"http://" + gone.Addr().String(), Options{}, 0},
		"no such host":              {"https://no-such-host.invalid:7460", good, UnknownAddress},
	} {
		t.Run(name, func(t *testing.T) {
			err := Diagnose(t.Context(), c.url, c.o)
			var m *MismatchError
			if c.want == 0 {
				require.NoError(t, err)
				return
			}
			if c.want == UnknownAddress && err == nil {
				t.Log("the resolver of this machine does not say that there is no such host")
				return
			}
			require.True(t, errors.As(err, &m), "%v", err)
			assert.Equal(t, c.want, m.Cause, "%v", err)
			assert.Contains(t, m.Error(), c.url)
		})
	}
	require.ErrorIs(t, Diagnose(t.Context(), secure, Options{Cert: "a"}), ErrCertificate)
	base, err := BaseURL("unix:/nowhere")
	require.NoError(t, err)
	require.NoError(t, Diagnose(t.Context(), base, Options{}))
}
