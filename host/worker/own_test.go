package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		"socket, elsewhere": {control: []string{"https://control-0:7460"}, listen: []string{"unix:/run/w.sock"}, fails: true},
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
			return os.WriteFile(path, makePartition(t, 9, 1030), 0o600)
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
