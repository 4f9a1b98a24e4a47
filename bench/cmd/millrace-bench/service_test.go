package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/cluster/clustertest"
	benchservice "github.com/millrace/millrace/bench/service"
)

// The first line of the report says which rows come from real storage nodes and which from stand-ins.
func TestBenchServiceSaysWhichNodesAreStandIns(t *testing.T) {
	var out strings.Builder
	printService(&out, &benchservice.Result{Kinds: benchservice.NodeKinds})
	first, _, _ := strings.Cut(out.String(), "\n")
	assert.Contains(t, first, "agents are real storage nodes")
	assert.Contains(t, first, "stand-ins hold mini-batches in memory and preprocess nothing")
}

// TestBenchService measures real nodes and stand-ins over every transport with little data. It takes half a minute on a
// busy machine, because each of six measurements starts two nodes as processes and a job, which measures P.
func TestBenchService(t *testing.T) {
	clustertest.Program(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var r benchservice.Result
	require.NoError(t, json.Unmarshal([]byte(must(t, "bench", "service", "--progress", "none", "--output", "json",
		"--time", "40ms", "--nodes", "2", "--rows", "256", "--drive-rows", "4000", "--no-ledger", "--no-failover")), &r))
	require.Len(t, r.Wire, 2*len(cluster.Transports()))
	for i, w := range r.Wire {
		assert.Equal(t, cluster.Transports()[i/2], w.Transport)
		assert.Equal(t, 2, w.Nodes)
		assert.Equal(t, []benchservice.Kind{benchservice.Agent, benchservice.StandIn}[i%2], w.Kind)
		assert.Positive(t, w.BytesPerSecond)
		assert.Positive(t, w.RawPerSecond)
		assert.InDelta(t, w.BytesPerSecond/w.RawPerSecond, w.Ratio, 1e-9)
		if w.Kind == benchservice.Agent {
			assert.InDelta(t, w.BytesPerSecond/r.Wire[i+1].BytesPerSecond, w.Ceiling, 1e-9)
		}
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "drives, sockets and folders are gone")
	out := must(t, "bench", "service", "--progress", "none", "--time", "40ms", "--nodes", "1", "--transports", "unix",
		"--rows", "256", "--no-agents", "--no-ledger", "--no-failover")
	assert.Contains(t, out, "stand-in")
	assert.NotRegexp(t, `(?m)^unix +1 +agent`, out)
}
