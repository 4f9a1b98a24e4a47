package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
)

// TestWrongAddressesAndCertificates checks that an error that a repeated request would not mend is printed at once,
// with the remedy; commands that waited would outlive the test.
func TestWrongAddressesAndCertificates(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	ann, stranger := certified(t, dir), certified(t, other)
	issue := func(id identity.Identity, life time.Duration, hosts ...string) identity.Options {
		stem := filepath.Join(dir, id.Name)
		o := identity.Options{Cert: stem + ".pem", Key: stem + ".key", CA: ann.CA}
		require.NoError(t,
			identity.Issue(dir, identity.Request{Identity: id, Hosts: hosts, Lifetime: life}, o.Cert, o.Key))
		return o
	}
	files := func(o identity.Options) []string { return []string{"--cert", o.Cert, "--key", o.Key, "--ca", o.CA} }
	secure := controlRun(t, files(issue(identity.Identity{Role: identity.Control, Name: "c0"}, 0, "127.0.0.1"))...)
	stale := controlRun(t,
		files(issue(identity.Identity{Role: identity.Control, Name: "c1"}, time.Nanosecond, "127.0.0.1"))...)
	unencrypted := controlRun(t)
	past := issue(identity.Identity{Role: identity.Operator, Name: "bob"}, time.Nanosecond)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(secure, "https://"))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			_, _ = c.Read(make([]byte, 1024))
			_ = c.Close()
		}
	}()

	for name, c := range map[string]struct {
		at   string
		who  identity.Options
		want []string
	}{
		"http to https": {
			strings.Replace(secure, "https:", "http:", 1), identity.Options{},
			[]string{"serves TLS", "write https://", "--ca"},
		},
		"https to http": {
			strings.Replace(unencrypted, "http:", "https:", 1), ann, []string{"serves in clear", "write http://"},
		},
		"no certificate": {
			secure, identity.Options{}, []string{"no certificate was given", "--cert", "--key", "--ca", "--context"},
		},
		"a server of another": {secure, stranger, []string{"another authority", "--ca"}},
		"a certificate of another": {
			secure, identity.Options{Cert: stranger.Cert, Key: stranger.Key, CA: ann.CA},
			[]string{"does not know the authority", "--cert"},
		},
		"another host":                {"https://localhost:" + port, ann, []string{"other names", "--host"}},
		"a server's that has expired": {stale, ann, []string{"not valid now", "millrace pki issue"}},
		"one's own that has expired":  {secure, past, []string{"has expired", "millrace pki issue"}},
		"SSH": {
			"http://" + l.Addr().String(), identity.Options{}, []string{"does not speak HTTP", "SSH-2.0", "--control"},
		},
		"two of three files": {
			secure, identity.Options{Cert: ann.Cert, Key: ann.Key}, []string{"name all three", "--ca"},
		},
		"a file that is not there": {
			secure, identity.Options{Cert: ann.Cert, Key: ann.Key, CA: "nothing.pem"}, []string{"nothing.pem", "--ca"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--control", c.at}
			for flag, path := range map[string]string{"--cert": c.who.Cert, "--key": c.who.Key, "--ca": c.who.CA} {
				if path != "" {
					args = append(args, flag, path)
				}
			}
			for _, command := range [][]string{
				{"jobs", "list", "--patience", "1h"}, {"nodes", "list", "--patience", "1h"},
				{"train", "--pipeline", "rm1"},
			} {
				code, _, errs := millrace(t, append(command, args...)...)
				assert.Equal(t, exitFailed, code)
				for _, want := range c.want {
					assert.Contains(t, errs, want)
				}
			}
		})
	}
	must(t, append([]string{"nodes", "list", "--control", secure}, files(ann)...)...)
	code, _, errs := millrace(t, "nodes", "list", "--control", "http://127.0.0.1:1", "--patience", "10ms")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "nothing listens there: start a control plane (millrace up")
	// One of two members has the right address, and that member is asked.
	must(t, append([]string{"nodes", "list", "--control", strings.Replace(secure, "https:", "http:", 1) + "," + secure},
		files(ann)...)...)
}
