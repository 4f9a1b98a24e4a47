package worker

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
)

func TestParseRank(t *testing.T) {
	r, err := ParseRank("ads-0badcafe/3")
	require.NoError(t, err)
	assert.Equal(t, Rank{Job: "ads-0badcafe", Number: 3}, r)
	for _, text := range []string{"", "ads", "/3", "ads/", "ads/-1", "ads/4294967296", "ads/0/1"} {
		_, err := ParseRank(text)
		assert.ErrorContains(t, err, "want the job's id and the rank", text)
	}
}

// TestAWorkerOfOneRankIsReached checks the name, the threads and the address that a configuration without them gets,
// and that a worker cannot announce an address of this machine alone to a control plane of another machine.
func TestAWorkerOfOneRankIsReached(t *testing.T) {
	for name, test := range map[string]struct {
		control, listen, advertise []string
		fails                      bool
	}{
		"one machine":       {control: []string{"http://127.0.0.1:7460"}},
		"a socket":          {control: []string{"unix:/run/control.sock"}},
		"by name":           {control: []string{"http://localhost:7460", "http://[::1]:7461"}},
		"elsewhere":         {control: []string{"https://control-0:7460"}, fails: true},
		"one elsewhere":     {control: []string{"http://127.0.0.1:7460", "https://10.0.0.1:7460"}, fails: true},
		"listens to all":    {control: []string{"https://control-0:7460"}, listen: []string{"0.0.0.0:7080"}},
		"advertises itself": {control: []string{"https://control-0:7460"}, advertise: []string{"https://gpu-0:7080"}},
		"socket, elsewhere": {control: []string{"https://control-0:7460"},
			listen: []string{"unix:/run/w.sock"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultConfig()
			c.Control, c.Advertise = test.control, test.advertise
			if test.listen != nil {
				c.Listen = test.listen
			}
			err := c.CompleteFor(Rank{Job: "ads", Number: 3})
			if test.fails {
				require.ErrorContains(t, err, "the control plane is on another machine")
				return
			}
			require.NoError(t, err)
			assert.Regexp(t, `^own-3-[0-9a-f]{12}$`, c.Name)
			assert.Positive(t, c.Threads)
			if test.listen == nil {
				assert.Equal(t, []string{"127.0.0.1:0"}, c.Listen)
			}
			require.NoError(t, c.CompleteFor(Rank{Job: "ads", Number: 3}), "again")
		})
	}
}

// certificate issues a certificate, with an authority of its own.
func certificate(t *testing.T, role identity.Role, name string, hosts ...string) node.TLSConfig {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	c := node.TLSConfig{Cert: filepath.Join(dir, "w.pem"), Key: filepath.Join(dir, "w.key"),
		CA: filepath.Join(dir, identity.AuthorityCert)}
	require.NoError(t, identity.Issue(dir, identity.Request{Identity: identity.Identity{Role: role, Name: name},
		Hosts: hosts}, c.Cert, c.Key))
	return c
}

// TestACertificateIsEnoughForOneRank checks where a worker of one rank listens and is called with the certificate of a
// launcher, and which certificates are not enough, with what the user can do.
func TestACertificateIsEnoughForOneRank(t *testing.T) {
	here, away := "https://127.0.0.1:7460", "https://control-0:7460"
	for name, test := range map[string]struct {
		role              identity.Role
		hosts             []string
		control           string
		change            func(c *Config)
		listen, advertise string
		fails             string
	}{
		"one machine": {control: here, hosts: []string{"127.0.0.1"},
			listen: "127.0.0.1:0", advertise: "https://127.0.0.1:0"},
		"one machine, v6": {control: here, hosts: []string{"::1"},
			listen: "[::1]:0", advertise: "https://[::1]:0"},
		"localhost": {control: here, hosts: []string{"localhost"},
			listen: "127.0.0.1:0", advertise: "https://localhost:0"},
		"here, by name": {control: here, hosts: []string{"gpu-0"}, listen: ":0", advertise: "https://gpu-0:0"},
		"elsewhere, name": {control: away, hosts: []string{"localhost", "gpu-0"},
			listen: ":0", advertise: "https://gpu-0:0"},
		"elsewhere, IP": {control: away, hosts: []string{"127.0.0.1", "10.0.0.7"},
			listen: "10.0.0.7:0", advertise: "https://10.0.0.7:0"},
		"no host":       {control: here, fails: "names no host"},
		"only this one": {control: away, hosts: []string{"127.0.0.1", "localhost"}, fails: "names no host"},
		"only a pattern": {control: away, hosts: []string{"*.example.net"},
			fails: "--role launcher --name NAME --host HOST"},
		"an operator's": {control: here, role: identity.Operator, fails: "needs one of the role launcher"},
		"a member's": {control: here, role: identity.Control, hosts: []string{"h"},
			fails: "needs one of the role launcher"},
		"with its address": {control: away, change: func(c *Config) { c.Listen = []string{"10.0.0.7:7080"} },
			listen: "10.0.0.7:7080"},
		"called elsewhere": {control: away, change: func(c *Config) { c.Advertise = []string{"https://gpu:7"} },
			listen: "127.0.0.1:0", advertise: "https://gpu:7"},
		"a name": {control: here, hosts: []string{"127.0.0.1"}, change: func(c *Config) { c.Name = "own-gpu" },
			listen: "127.0.0.1:0", advertise: "https://127.0.0.1:0"},
		"a node's name": {control: here, change: func(c *Config) { c.Name = "gpu-0" }, fails: "begins with own-"},
		"partitions": {control: here, change: func(c *Config) { c.Partitions = []string{"s3://b/*.parquet"} },
			fails: "announces none"},
	} {
		t.Run(name, func(t *testing.T) {
			role := cmp.Or(test.role, identity.Launcher)
			c := DefaultConfig()
			c.Control, c.TLS = []string{test.control}, certificate(t, role, "ads.gpu-0", test.hosts...)
			if test.change != nil {
				test.change(&c)
			}
			err := c.CompleteFor(Rank{Job: "ads", Number: 3})
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				return
			}
			require.NoError(t, err)
			assert.Regexp(t, `^own-`, c.Name)
			assert.Equal(t, []string{test.listen}, c.Listen)
			if test.advertise != "" {
				assert.Equal(t, []string{test.advertise}, c.Advertise)
			}
			require.NoError(t, c.CompleteFor(Rank{Job: "ads", Number: 3}), "again")
			require.NoError(t, c.Check())
		})
	}
	c := DefaultConfig()
	c.Control, c.TLS = []string{here}, certificate(t, identity.Node, "gpu-7", "127.0.0.1")
	require.NoError(t, c.CompleteFor(Rank{Job: "ads"}))
	assert.Equal(t, "gpu-7", c.Name, "a node has the name of its certificate")
	c.TLS.Cert = "no-such.pem"
	require.ErrorContains(t, c.CompleteFor(Rank{Job: "ads"}), "no-such.pem")
}

// TestALaunchersWorkerReadsNoNode checks that a worker with a launcher's certificate reads its files, and asks no node
// for a partition that no file holds: the split fails with an error that says what to do.
func TestALaunchersWorkerReadsNoNode(t *testing.T) {
	data := content(t)
	holder, _ := startHolder(t, "n0", data)
	place := api.Source{Partition: "a.parquet", Copies: []api.Copy{{Node: "n0", Drive: "d0", URLs: holder.URLs()}}}
	want := dataset.Partition{Name: "a.parquet", Bytes: int64(len(data["a.parquet"]))}
	for _, launcher := range []bool{false, true} {
		p := NewPartitions(PartitionsOptions{
			Client: http.DefaultClient, Launcher: launcher, Log: slog.New(slog.DiscardHandler),
			Locate: func(context.Context, dataset.Digest, []string) ([]api.Source, error) { return []api.Source{place}, nil },
		})
		at := newPlaces(p, dataset.Digest{}, want, place)
		assert.Len(t, at.list, map[bool]int{false: 1, true: 0}[launcher])
		if launcher {
			_, err := at.ReadAt(t.Context(), make([]byte, 10), 0)
			var lost *source.UnreachableError
			require.ErrorAs(t, err, &lost)
			assert.ErrorContains(t, err, "--local")
			assert.ErrorContains(t, err, "certificate of the role node")
		}
		require.NoError(t, at.Close())
	}
}

// TestFilesOfThisMachine checks that a partition is read from a local file if the file is the job's, and from its node
// if the file of that name has other content: the bytes are the holder's in both cases. A local file that does not
// exist is an error at the start.
func TestFilesOfThisMachine(t *testing.T) {
	data := content(t)
	holder, _ := startHolder(t, "n0", data)
	for name, test := range map[string]struct {
		change func(path string) error
		node   bool // whether bytes come from the node, too
	}{
		"the same files": {func(string) error { return nil }, false},
		"another file": {func(path string) error {
			return os.WriteFile(path, nodetest.Partition(t, 9, 1030), 0o600)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{"a.parquet", "c.parquet"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), data[file], 0o600))
			}
			require.NoError(t, test.change(filepath.Join(dir, "a.parquet")))
			delete(data, "day 1/b.parquet")
			two, _ := startHolder(t, "n1", data) // without the partition that no file has
			f := startWorker(t, func(c *Config) { c.Local = []string{dir} })
			j := describeJob(t, two, dataset.Options{SplitBatches: 4})
			f.placeAll(j, copyAt("n0", holder.URLs()...))
			f.prepare(j)
			f.sameAsHolder(j, two)
			assert.Positive(t, f.metric(`millrace_worker_read_bytes_total{source="store"}`))
			fromNode := f.metric(`millrace_worker_read_bytes_total{source="node"}`)
			assert.Equal(t, test.node, fromNode > 0, "%v bytes came from the node", fromNode)
		})
	}
	c := DefaultConfig()
	c.Control, c.Listen, c.Local = []string{"http://127.0.0.1:1"}, []string{"127.0.0.1:0"}, []string{"no-such.parquet"}
	_, err := Start(t.Context(), c, Options{})
	require.ErrorIs(t, err, ErrConfig)
	assert.ErrorContains(t, err, "no-such.parquet")
}
