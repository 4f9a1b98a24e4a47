package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/strictyaml"
)

// TestConfigSchemaIsPublished compares the schema with the published one, which MILLRACE_UPDATE=1 writes.
func TestConfigSchemaIsPublished(t *testing.T) {
	schema := strictyaml.Schema("Configuration of a Millrace storage node", DefaultConfig())
	require.True(t, json.Valid(schema))
	goldenfile.Text(t, "../../docs/node.schema.json", string(schema))
}

func TestDefaultsAreADocument(t *testing.T) {
	c, err := ParseConfig(PrintDefaults())
	require.NoError(t, err)
	want := DefaultConfig()
	require.NoError(t, want.Check())
	c.Advertise, c.Control, c.Drives, c.Image = want.Advertise, want.Control, want.Drives, want.Image // empty lists
	c.Modules.Images, c.Modules.Keys = nil, nil
	assert.Equal(t, want, c)
	assert.NotEmpty(t, c.Name)
}

func TestConfigDocument(t *testing.T) {
	c, err := ParseConfig([]byte(`
name: n1
listen: ["127.0.0.1:0", unix:/run/n.sock]
control: [http://127.0.0.1:7400]
drives:
  - {name: d0, uri: "file:/data/d0.flash?slm=1GiB", streams: 3, slm: 64MiB, coalesce: 1280KiB}
  - name: d1
    uri: mem:d1
    engine: cpu
    format: criteo-tsv
    members: ["*.tsv"]
text: {label_absent: true, malformed: drop}
buffers: {job: 1MiB}
runs: {idle: 1m}
`))
	require.NoError(t, err)
	assert.Equal(t, "n1", c.Name)
	assert.Equal(t, BufferConfig{Node: 1 << 30, Job: 1 << 20}, c.Buffers)
	assert.Equal(t, Duration(time.Minute), c.Runs.Idle)
	o := c.Drives[0].hostOptions(c.Text, 0)
	assert.Equal(t, host.DriveOptions{Name: "d0", Jobs: defaultJobs, Streams: 3, SLM: 64 << 20, Coalesce: 1280 << 10,
		Text: text.Options{LabelAbsent: true, Policy: text.Drop}}, o)
	o = c.Drives[1].hostOptions(c.Text, 0)
	assert.Equal(t, host.EngineCPU, o.Engine)
	assert.Equal(t, program.CriteoTSV, o.Source)
}

func TestConfigRefused(t *testing.T) {
	for doc, want := range map[string]string{
		"nmae: x\n": `line 1, column 1: unknown key "nmae"`,
		"drives:\n  - {name: a, url: b}\n": "line 2, column 15: drives[0]: unknown key \"url\": " +
			"want one of name, uri",
		"name: Big\n":                                       `name: "Big"`,
		"listen: []\n":                                      "listen: name an address",
		"listen: [nowhere]\n":                               "listen[0]: want HOST:PORT",
		"listen: ['unix:']\n":                               "listen[0]: want unix:PATH",
		"listen: ['0.0.0.0:1']\n":                           "advertise",
		"listen: [':1']\n":                                  "advertise",
		"advertise: [x]\n":                                  "advertise[0]",
		"control: ['ftp://x']\n":                            "control[0]",
		"insecure_network: x\n":                             "insecure_network",
		"tls: {cert: a}\n":                                  "tls: cert, key and ca go together",
		"buffers: {node: 0}\n":                              "buffers: node and job",
		"buffers: {node: lots}\n":                           "line 1, column 17: buffers.node",
		"runs: {idle: 0s}\n":                                "runs: idle",
		"runs: {idle: -1s}\n":                               "line 1, column 14: runs.idle: want a time span",
		"limits: {jobs: 0}\n":                               "limits:",
		"limits: {requests_per_second: -1}\n":               "limits:",
		"measure: 0s\n":                                     "measure",
		"drives: [{name: A, uri: mem:}]\n":                  "drives[0].name",
		"drives: [{name: a}]\n":                             "drives[0].uri",
		"drives: [{name: a, uri: 'file:'}]\n":               "drives[0].uri",
		"drives: [{name: a, uri: 'mem:', threads: 1000}]\n": "drives[0]: threads",
		"drives: [{name: a, uri: 'mem:', members: ['']}]\n": "drives[0].members[0]",
		"drives: [{name: a, uri: 'mem:'}, {name: a, uri: 'mem:'}]\n": "drives[1].name: " +
			"two drives are called a",
		"drives: [{name: a, uri: 'file:x'}, {name: b, uri: 'file:./x?slm=1GiB'}]\n": "drives[1].uri: it " +
			"is the drive that a is, too",
		"drives: [{name: a, uri: 'tcp://h:1/nqn'}, {name: b, uri: 'tcp://h:1/nqn?threads=2'}]\n": "drives[1].uri: it " +
			"is the drive that a is, too",
		"image: {id: zz}\n": "image.id",
		"drives: [{name: a, uri: 'mem:', engine: gpu}]\n": "drives[0].engine: want one of",
		"drives: [{name: a, uri: 'mem:', format: csv}]\n": "drives[0].format",
		"log: {level: loud}\n":                            "log.level: want one of debug, info, warn, error",
	} {
		_, err := ParseConfig([]byte(doc))
		require.Error(t, err, doc)
		assert.ErrorContains(t, err, want, doc)
	}
	_, err := ReadConfig(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(path, []byte("x: 1"), 0o600))
	_, err = ReadConfig(path)
	require.ErrorIs(t, err, ErrConfig)
	assert.ErrorContains(t, err, path+": line 1, column 1")
}

func TestSizes(t *testing.T) {
	for text, n := range map[string]Bytes{"0": 0, "1B": 1, "1KiB": 1024, "1536KiB": 1536 << 10, "3GiB": 3 << 30} {
		var b Bytes
		require.NoError(t, b.UnmarshalText([]byte(text)))
		assert.Equal(t, n, b)
		out, err := b.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, text, string(out))
	}
}
