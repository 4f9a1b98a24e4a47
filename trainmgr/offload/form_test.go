package offload

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheTable checks the bytes of the table of metrics, which launchers of later builds read, and reads a
// table that an earlier build wrote.
func TestFormOfTheTable(t *testing.T) {
	const path = "testdata/table.v1.json"
	keys := KeyParts{
		Model: "rm1", Batch: 8192, Machine: "trainer", Pipeline: []byte(`{"name":"rm1"}`), Workers: []string{"n0/d0 cpu 1"},
	}.Keys()
	var table Table
	require.NoError(t, table.Put(keys, fullMetrics(), Known{true, true, true}))
	written, err := table.Encode()
	require.NoError(t, err)
	goldenfile.Text(t, path, string(written))

	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	read, err := DecodeTable(kept)
	require.NoError(t, err)
	got, known := read.Lookup(keys)
	assert.True(t, known.All(), "the keys of a model, a pipeline and workers are the same")
	assert.Equal(t, fullMetrics(), got)
}

// TestFormOfThePythonTable reads a table that the Python package wrote.
func TestFormOfThePythonTable(t *testing.T) {
	kept, err := os.ReadFile("testdata/table.python.v1.json")
	require.NoError(t, err)
	table, err := DecodeTable(kept)
	require.NoError(t, err)
	got, known := table.Lookup(KeyParts{
		Model: "rm1", Batch: 8192, Machine: "trainer", Pipeline: []byte(`{"name":"rm1"}`), Workers: []string{"n0/d0 cpu 1"},
	}.Keys())
	assert.True(t, known.All())
	assert.Equal(t, Metrics{Gthp: 123456.789, Lthp: 2.5, Pcycle: 1e-7, Tcycle: 0.5, Cores: 2,
		Candidates: []Candidate{{Cut: All, Rthp: 1 / 3.0, Ocycle: 1e-9}}}, got)
}
