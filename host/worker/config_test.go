package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/strictyaml"
	"github.com/millrace/millrace/sdk"
)

// TestConfigSchemaIsPublished compares the schema with the published one, which MILLRACE_UPDATE=1 writes.
func TestConfigSchemaIsPublished(t *testing.T) {
	schema := strictyaml.Schema("Configuration of a Millrace worker without data", DefaultConfig())
	require.True(t, json.Valid(schema))
	goldenfile.Text(t, "../../docs/worker.schema.json", string(schema))
}

// read writes a document to a file, and reads and checks it.
func read(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c, err := ReadConfig(path)
	if err == nil {
		err = c.Check()
	}
	return c, err
}

func TestConfigDocument(t *testing.T) {
	c, err := read(t, "name: w1\ncontrol: [http://127.0.0.1:7460]\nthreads: 4\nmemory: 1GiB\njobs: 4\n")
	require.NoError(t, err)
	assert.Equal(t, memoryParts{engine: 128 << 20, batches: 256 << 20, read: 256 << 20}, c.divideMemory(),
		"all jobs' parts, mini-batches and reads together are the memory")
	c.Drive = "mem:?size=0"
	assert.Equal(t, memoryParts{batches: 512 << 20, read: 512 << 20}, c.divideMemory(), "the drive has memory of its own")
	n := c.nodeConfig()
	assert.Equal(t, "w1", n.Name)
	assert.Equal(t, 4, n.Limits.Jobs)
	assert.Empty(t, n.Drives)
	defaults, err := read(t, string(PrintDefaults()))
	require.ErrorContains(t, err, "control", "a worker has no work of its own")
	defaults.Control = c.Control
	require.NoError(t, defaults.Check())
	assert.Positive(t, defaults.Threads)
	assert.GreaterOrEqual(t, int64(defaults.Memory), int64(defaultMemory))
	assert.LessOrEqual(t, int64(defaults.Memory), int64(mostMemory))
}

// TestConfigRefused checks the error for values that are out of range. For jobs, memory and the most threads it checks
// the bound from both sides.
func TestConfigRefused(t *testing.T) {
	const control = "control: [http://127.0.0.1:7460]\n"
	for text, want := range map[string]string{
		"":                              "control: name the control plane",
		control + "threds: 1\n":         `unknown key "threds"`,
		control + "threads: -1\n":       "threads: -1",
		control + "jobs: 0\n":           "jobs: 0",
		control + "jobs: 64\n":          "",
		control + "jobs: 65\n":          "jobs: 65",
		control + "memory: 64MiB\n":     "",
		control + "memory: 63MiB\n":     "memory",
		control + "read_tries: 0\n":     "read_tries",
		control + "requests: 0\n":       "requests",
		control + "read_time: 0s\n":     "read_time",
		control + "limits: {jobs: 3}\n": "limits.jobs",
		control + "name: Big\n":         `name: "Big"`,
		control + "listen: []\n":        "listen",
		control + "tls: {cert: a}\n":    "tls",
		"control: [ftp://x]\n":          "control[0]",
		control + "drive: card0\n":      "drive: ",
		control + "drive: tcp://127.0.0.1:4421/nqn.2024-01.io.millrace:card0\n":             "",
		control + "drive: tcp://127.0.0.1:4421/nqn.2024-01.io.millrace:card0\nthreads: 1\n": "leave one of the two out",
		control + "stores: [s3://rows/]\npartitions: ['s3://rows/*']\n":                     "",
		control + "stores: [s3://rows]\n":                                                   `stores: "s3://rows": want`,
		control + "stores: [/data/]\n":                                                      "stores: ",
		control + "threads: " + strconv.Itoa(sdk.MaxThreads) + "\n":                         "",
		control + "threads: " + strconv.Itoa(sdk.MaxThreads+1) + "\n":                       "threads",
	} {
		_, err := read(t, text)
		if want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, want, text)
		}
	}
	assert.GreaterOrEqual(t, int64(leastMemory/4), int64(source.MinMemory))
	_, err := ReadConfig(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, ErrConfig)
	_, err = Start(t.Context(), Config{}, Options{})
	require.ErrorIs(t, err, ErrConfig)
}

// TestTheUnitMatches checks that the systemd unit awaits the worker's notification, gives it more time to stop than it
// takes to drain, checks the configuration before the start, and has a watchdog.
func TestTheUnitMatches(t *testing.T) {
	b, err := os.ReadFile("systemd/millrace-worker.service")
	require.NoError(t, err)
	unit := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[k] = v
		}
	}
	assert.Equal(t, "notify", unit["Type"])
	stop, err := strconv.Atoi(unit["TimeoutStopSec"])
	require.NoError(t, err)
	assert.Greater(t, time.Duration(stop)*time.Second, time.Duration(node.DefaultConfig().DrainTime))
	assert.Contains(t, unit["ExecStart"], "millrace worker run --config ")
	assert.Contains(t, unit["ExecStartPre"], "millrace config check --document --kind worker ")
	assert.NotEmpty(t, unit["WatchdogSec"])
}
