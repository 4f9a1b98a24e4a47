package worker

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/internal/objectserver"
	"github.com/millrace/millrace/sdk"
)

// TestExamine checks the finding about one part of a configuration at a time: fine, a warning or a problem. No finding
// holds the query of a URL.
func TestExamine(t *testing.T) {
	server := objectserver.New(t)
	server.Put("rows/a.parquet", nodetest.Partition(t, 1, 40))
	uri, _ := serveCard(t, "127.0.0.1:0")
	plain := "file:" + filepath.Join(t.TempDir(), "plain.flash")
	dev, err := sdk.Create(t.Context(), plain+"?size=1MiB", sdk.DeviceOptions{Plain: true})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	for name, k := range map[string]struct {
		change func(c *Config)
		want   string // PART: LEVEL: words
	}{
		"no folder":    {func(c *Config) { c.StateDir = "" }, "state_dir: warning: none"},
		"an address":   {func(*Config) {}, "listen[0]: fine: can be listened at"},
		"a drive":      {func(c *Config) { c.Drive = uri }, "drive: fine: can be opened, and computes"},
		"in memory":    {func(c *Config) { c.Drive = "mem:?size=0" }, "drive: fine: "},
		"no drive":     {func(c *Config) { c.Drive = "file:/nowhere/card" }, "drive: problem: "},
		"nobody there": {func(c *Config) { c.Drive = "tcp://127.0.0.1:1/nqn.x:y" }, "drive: problem: "},
		"a partition": {func(c *Config) { c.Partitions = []string{server.URL + "/rows/a.parquet"} },
			"partitions[0]: fine: 1 partition"},
		"no partition": {func(c *Config) { c.Partitions = []string{server.URL + "/rows/b.parquet?token=secret"} },
			"partitions[0]: problem: " + server.URL + "/rows/b.parquet does not exist"},
		"no client": {func(c *Config) { c.Partitions = []string{"s3://rows/*"} }, "partitions[0]: problem: "},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultConfig()
			c.Name, c.Listen, c.Control = "w0", []string{"127.0.0.1:0"}, []string{"http://127.0.0.1:1"}
			c.StateDir = t.TempDir()
			k.change(&c)
			require.NoError(t, c.Check())
			found := map[string]string{}
			for _, f := range c.Examine(t.Context(), nil, time.Now()) {
				part, _, _ := strings.Cut(f.Part, " ")
				found[part] = part + ": " + f.Level + ": " + f.Says
				assert.NotContains(t, f.Part+f.Says, "secret")
			}
			part, _, _ := strings.Cut(k.want, ":")
			assert.True(t, strings.HasPrefix(found[part], k.want), "%s\n%v", k.want, found)
			assert.NotContains(t, found, "drives")
		})
	}
}

// TestExamineALaunchersCertificate checks what is found of a worker with the certificate of a launcher: it is enough
// for one rank, if it is for a server and the worker announces no partitions.
func TestExamineALaunchersCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, partitions []string
		level, want       string
	}{
		"with a host":     {[]string{"127.0.0.1"}, nil, node.Fine, "--serves, for a rank of a job of ads"},
		"without a host":  {nil, nil, node.Problem, "it is not for a server"},
		"with partitions": {[]string{"127.0.0.1"}, []string{"no-such.parquet"}, node.Problem, "announces none"},
	} {
		conf := DefaultConfig()
		conf.Name, conf.Listen, conf.Control = "own-w", []string{"127.0.0.1:0"}, []string{"https://127.0.0.1:1"}
		conf.TLS, conf.Partitions = certificate(t, identity.Launcher, "ads.gpu-0", c.hosts...), c.partitions
		require.NoError(t, conf.Check())
		said := ""
		for _, f := range conf.Examine(t.Context(), nil, time.Now()) {
			if f.Part == "tls" && f.Level == c.level {
				said += f.Says
			}
		}
		assert.Contains(t, said, c.want, name)
	}
}
