package node

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk"
)

// examined has the findings of an examination, level first.
func examined(t *testing.T, now time.Time, change func(c *Config)) map[string]string {
	t.Helper()
	c := DefaultConfig()
	c.Name, c.Listen, c.StateDir = "n0", []string{"127.0.0.1:0"}, t.TempDir()
	change(&c)
	require.NoError(t, c.Check())
	said := map[string]string{}
	for _, f := range c.Examine(t.Context(), now) {
		part, _, _ := strings.Cut(f.Part, " ")
		said[part] = f.Level + ": " + f.Says
	}
	return said
}

// authority makes an authority and issues a certificate.
func authority(t *testing.T, r identity.Request) TLSConfig {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	c := TLSConfig{Cert: filepath.Join(dir, "n.pem"), Key: filepath.Join(dir, "n.key"),
		CA: filepath.Join(dir, identity.AuthorityCert)}
	require.NoError(t, identity.Issue(dir, r, c.Cert, c.Key))
	return c
}

// TestExamine checks what is found fine, what is warned of, and what keeps a node from working, each part by itself.
func TestExamine(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	node0 := identity.Request{Identity: identity.Identity{Role: identity.Node, Name: "n0"},
		Hosts: []string{"node0.example.net"}}
	good := authority(t, node0)
	launcher := authority(t,
		identity.Request{Identity: identity.Identity{Role: identity.Launcher, Name: "l"},
			Hosts: []string{"node0.example.net"}})
	other := authority(t, node0)
	other.CA = good.CA
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	flash := "file:" + filepath.Join(dir, "d0.flash")
	dev, err := sdk.Create(t.Context(), flash+"?size=1MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	before, err := os.ReadFile(filepath.Join(dir, "d0.flash.json"))
	require.NoError(t, err)
	served := "file:" + filepath.Join(dir, "d1.flash")
	node := start(t, func(c *Config) { c.Name = "n0" }, func() string {
		dev, err := sdk.Create(t.Context(), served+"?size=1MiB", sdk.DeviceOptions{})
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		return served
	}())
	_ = node

	drive := func(uri string) func(c *Config) {
		return func(c *Config) { c.Drives = []DriveConfig{{Name: "d0", URI: uri}} }
	}
	tls := func(o TLSConfig) func(c *Config) {
		return func(c *Config) { c.TLS, c.Advertise = o, []string{"https://node0.example.net:7070"} }
	}
	for name, c := range map[string]struct {
		now    time.Time
		change func(c *Config)
		part   string
		want   string
	}{
		"a state folder": {change: func(*Config) {}, part: "state_dir", want: "fine: "},
		"a state folder to be made": {change: func(c *Config) { c.StateDir = filepath.Join(dir, "state") },
			part: "state_dir", want: "will be made"},
		"no state folder": {change: func(c *Config) { c.StateDir = "" }, part: "state_dir",
			want: "warning: none"},
		"a state folder in no folder": {change: func(c *Config) { c.StateDir = filepath.Join(dir, "a", "b") },
			part: "state_dir", want: "problem: "},
		"a file as state folder": {change: func(c *Config) { c.StateDir = filepath.Join(dir, "d0.flash") },
			part: "state_dir", want: "problem: "},

		"a good certificate": {change: tls(good), part: "tls", want: "fine: certificate of a node, until "},
		"a certificate about to end": {now: now.Add(340 * 24 * time.Hour), change: tls(good), part: "tls",
			want: "fine: "},
		"a certificate that has ended": {now: now.Add(400 * 24 * time.Hour), change: tls(good), part: "tls",
			want: "issue another"},
		"of another role": {change: tls(launcher), part: "tls",
			want: "it is of role launcher, and this is a node"},
		"of another authority": {change: tls(other), part: "tls", want: "has not signed it"},
		"a key that is not there": {change: tls(TLSConfig{Cert: good.Cert, Key: good.Key + "x", CA: good.CA}),
			part: "tls", want: "no such file"},
		"a name that is not in it": {change: func(c *Config) {
			c.TLS, c.Advertise = good,
				[]string{"https://node1.example.net:7070"}
		}, part: "tls", want: "issue one with --host node1.example.net"},
		"a control plane that wants it": {change: func(c *Config) { c.Control = []string{"https://control-0:7460"} },
			part: "control[0]", want: "problem: it wants TLS"},
		"a control plane": {change: func(c *Config) { c.Control = []string{"http://127.0.0.1:7460"} },
			part: "control[0]", want: "fine: "},

		"an address": {change: func(*Config) {}, part: "listen[0]", want: "fine: can be listened at"},
		"an address in use": {change: func(c *Config) { c.Listen = []string{taken.Addr().String()} },
			part: "listen[0]", want: "warning: it is in use"},
		"an address of another": {change: func(c *Config) {
			c.Listen, c.InsecureNetwork = []string{"192.0.2.7:7070"},
				"192.0.2.0/24"
		}, part: "listen[0]", want: "problem: "},
		"an address in clear": {change: func(c *Config) { c.Listen = []string{"192.0.2.7:7070"} }, part: "listen[0]",
			want: "problem: "},
		"a socket": {change: func(c *Config) { c.Listen = []string{"unix:" + dir + "/n.sock"} },
			part: "listen[0]", want: "fine: "},
		"a socket of the system": {change: func(c *Config) { c.Listen = []string{"unix:/run/no-such-thing/n.sock"} },
			part: "listen[0]", want: "warning: "},
		"a socket nowhere": {change: func(c *Config) { c.Listen = []string{"unix:" + dir + "/none/n.sock"} },
			part: "listen[0]", want: "problem: "},

		"an image that is not there": {change: func(c *Config) { c.Image.File = dir + "/none.mimg" }, part: "image",
			want: "problem: "},
		"no drive": {change: func(*Config) {}, part: "drives", want: "warning: there are none"},
		"a drive":  {change: drive(flash), part: "drives[0]", want: "fine: can be opened"},
		"a drive that is not there": {change: drive("file:" + dir + "/none.flash"), part: "drives[0]",
			want: "create it with millrace drive create"},
		"a drive in service here": {change: drive(served), part: "drives[0]", want: "fine: in service"},
		"a drive in service elsewhere": {change: func(c *Config) { drive(served)(c); c.Name = "n9" }, part: "drives[0]",
			want: "problem: drive " + filepath.Join(dir, "d1.flash") + ": drive is open elsewhere: node n0 (process "},
		"a drive in memory": {change: drive("mem:x"), part: "drives[0]", want: "warning: "},
		"a drive on a host that is not up": {change: drive("tcp://127.0.0.1:1/nqn.2024-01.io.millrace:x"),
			part: "drives[0]", want: "problem: "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.now.IsZero() {
				c.now = now
			}
			assert.Contains(t, examined(t, c.now, c.change)[c.part], c.want)
		})
	}
	x := &examination{c: &Config{TLS: good}}
	x.certificates(now.Add(340 * 24 * time.Hour))
	require.NotEmpty(t, x.findings)
	assert.Equal(t, Warning, x.findings[0].Level)
	assert.Contains(t, x.findings[0].Says, "in 24 days: issue another")
	after, err := os.ReadFile(filepath.Join(dir, "d0.flash.json"))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "looking changes nothing")
	left, err := filepath.Glob(filepath.Join(dir, "*check*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
