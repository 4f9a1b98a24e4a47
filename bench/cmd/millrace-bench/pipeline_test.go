package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster/clustertest"
	benchpipeline "github.com/millrace/millrace/bench/pipeline"
)

// pythonWith returns an interpreter that has as much as possible of what the ways of Python need, with the package of
// this tree on its path, and which kinds of tensors it has.
func pythonWith(t *testing.T) (interpreter string, kinds map[string]bool) {
	t.Helper()
	source, err := filepath.Abs("../../../sdk/python/src")
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", source)
	candidates := []string{"/usr/bin/python3", "python3"}
	if folder := os.Getenv("MILLRACE_PYTHON"); folder != "" {
		candidates = append([]string{filepath.Join(folder, "bin", "python")}, candidates...)
	}
	for _, candidate := range candidates {
		found := map[string]bool{}
		for kind, code := range map[string]string{
			"numpy": "import numpy, millrace", "torch": "import numpy, millrace.torch",
		} {
			if exec.Command(candidate, "-c", code).Run() == nil {
				found[kind] = true
			}
		}
		if interpreter == "" || len(found) > len(kinds) {
			interpreter, kinds = candidate, found
		}
	}
	return interpreter, kinds
}

// TestBenchPipeline brings little data along every way that this machine has. Run itself fails unless every way
// delivers the same mini-batches, each once. It takes long on a busy machine, because each way starts a control plane,
// a node and a trainer as processes, some of them in Python, which loads NumPy and torch.
func TestBenchPipeline(t *testing.T) {
	clustertest.Program(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	interpreter, kinds := pythonWith(t)
	const rows = 20_000
	var r benchpipeline.Report
	require.NoError(t, json.Unmarshal([]byte(must(t, "bench", "pipeline", "--progress", "none", "--output", "json",
		"--models", "rm1", "--rows", "20000", "--partitions", "2", "--rounds", "2", "--time", "40ms", "--python",
		interpreter)), &r))
	measured := map[benchpipeline.Way]benchpipeline.Result{}
	for _, x := range r.Results {
		measured[x.Way] = x
		assert.Positive(t, x.RowsPerSecond, x.Way)
		assert.Positive(t, x.BytesPerSecond, x.Way)
		assert.Positive(t, x.DriveShare, x.Way)
	}
	for _, way := range benchpipeline.Ways() {
		switch way {
		case benchpipeline.NumPyUnix, benchpipeline.NumPyTCP, benchpipeline.NumPyTLS:
			assert.Equal(t, kinds["numpy"], measured[way].Way == way, "%s: %v", way, r.LeftOut)
		case benchpipeline.TorchUnix, benchpipeline.TorchTCP:
			assert.Equal(t, kinds["torch"], measured[way].Way == way, "%s: %v", way, r.LeftOut)
		default:
			assert.Contains(t, measured, way)
		}
	}
	assert.Len(t, r.LeftOut, len(benchpipeline.Ways())-len(measured))
	digest := measured[benchpipeline.CPU].Digest
	for way, x := range measured {
		if way == benchpipeline.RawUnix || way == benchpipeline.RawTCP {
			assert.Zero(t, x.Rows)
			continue
		}
		assert.EqualValues(t, rows, x.Rows, way)
		assert.EqualValues(t, 4, x.MiniBatches, way) // 8,192 and 1,808 rows of each file
		assert.Equal(t, digest, x.Digest, way)
		assert.Equal(t, x.SentBytes, x.FrameBytes, way)
		service := way != benchpipeline.CPU && way != benchpipeline.Drive && way != benchpipeline.Trainer
		assert.Equal(t, service, x.FrameBytes > 0, way)
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "files, drives and sockets are gone")
}

func TestBenchPipelineRefusesWhatItCannotMeasure(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--ways", "moon", "moon"},
		{"--models", "rm9", "rm9"},
		{"--models", "rm1-real", "--criteo"},
		{"--partitions", "2000", "1024 files"},
		{"--rows", "3", "at least a row in each"},
		{"--rounds", "0", "--rounds"},
		{"--time", "0s", "--time"},
		{"--threads", "100000", "threads"},
	} {
		refuses(t, c.says, "pipeline", c.flag, c.value)
	}
}

// TestBenchPipelineWithoutPython checks that ways which the machine lacks are named, with the reason.
func TestBenchPipelineWithoutPython(t *testing.T) {
	clustertest.Program(t)
	out := must(t, "bench", "pipeline", "--progress", "none", "--models", "rm1", "--rows", "500", "--partitions", "1",
		"--rounds", "1", "--time", "10ms", "--ways", "cpu,numpy-unix", "--python", "/nowhere/python")
	assert.Regexp(t, `(?m)^RM1 +cpu `, out)
	assert.Contains(t, out, "left out: numpy-unix: /nowhere/python cannot be run")
}
