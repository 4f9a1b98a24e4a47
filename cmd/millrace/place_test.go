package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
)

// nodesOf runs so many storage nodes of one empty drive each under a control plane, until the test ends.
func nodesOf(t *testing.T, control string, n int) {
	t.Helper()
	for i := range n {
		drive := "file:" + filepath.Join(t.TempDir(), "d.flash")
		must(t, "drive", "create", drive+"?size=8MiB&slm=64MiB")
		c := node.DefaultConfig()
		c.Name, c.Listen, c.Control, c.Measure = "n"+string(rune('0'+i)), []string{"127.0.0.1:0"}, []string{control}, node.Duration(time.Millisecond)
		c.Drives = []node.DriveConfig{{Name: "d0", URI: drive}}
		a, err := node.Start(context.Background(), c, node.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, a.Close()) })
	}
	listedNodes(t, control, func(nodes []nodeView) bool {
		ready := 0
		for _, v := range nodes {
			if v.State == "ready" && len(v.Drives) == 1 && v.Drives[0].State == "ready" {
				ready++
			}
		}
		return ready == n
	})
}

// listedNodes waits until the nodes are as they should be.
func listedNodes(t *testing.T, control string, as func([]nodeView) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var nodes []nodeView
		require.NoError(t, json.Unmarshal([]byte(must(t, "nodes", "list", "--control", control, "--output", "json")), &nodes))
		return as(nodes)
	}, time.Minute, 50*time.Millisecond)
}

// placed runs the commands that place data on nodes.
func placed(t *testing.T, do func(args ...string), data string) {
	t.Helper()
	control := controlRun(t)
	nodesOf(t, control, 3)
	with := func(args ...string) { do(append(args, "--control", control)...) }
	with("dataset", "place", "--prefix", "day/", data+"/part-00000.parquet", data+"/part-00001.parquet")
	holding := func(n int) func([]nodeView) bool {
		return func(nodes []nodeView) bool {
			have := 0
			for _, v := range nodes {
				have += v.Partitions
			}
			return have == n
		}
	}
	listedNodes(t, control, holding(2))
	with("dataset", "replicate", "--replicas", "2")
	listedNodes(t, control, holding(4))
	with("dataset", "verify", "--deep", "--replicas", "2", "day/*")
	with("drive", "retire", "n0/d0", "--replicas", "2")
}

// TestPlaceFromTheCommandLine: files go to nodes, get copies, are verified, and leave a drive that is retired.
func TestPlaceFromTheCommandLine(t *testing.T) {
	data := generate(t, "--rows", "900", "--partitions", "3")
	files := []string{data + "/part-00000.parquet", data + "/part-00001.parquet", data + "/part-00002.parquet"}
	control := controlRun(t)
	nodesOf(t, control, 2)
	at := func(args ...string) []string {
		return append(args, "--control", control, "--output", "json", "--progress", "none")
	}
	var copies []copyView
	require.NoError(t, json.Unmarshal([]byte(must(t, at(append([]string{"dataset", "place", "--dry-run"}, files...)...)...)), &copies))
	require.Len(t, copies, 3)
	assert.False(t, copies[0].Done)
	require.NoError(t, json.Unmarshal([]byte(must(t, at(append([]string{"dataset", "place"}, files...)...)...)), &copies))
	drives := map[string]bool{}
	for _, k := range copies {
		assert.True(t, k.Done, k.Error)
		drives[k.To] = true
	}
	assert.Len(t, drives, 2, "spread over both")

	sum := func(want int) func([]nodeView) bool {
		return func(nodes []nodeView) bool { return nodes[0].Partitions+nodes[1].Partitions == want }
	}
	listedNodes(t, control, sum(3))
	code, _, errs := millrace(t, at("dataset", "verify", "--replicas", "2")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "3 partitions lack copies")
	code, _, errs = millrace(t, at(append([]string{"dataset", "place"}, files...)...)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "names are unique")
	must(t, at("dataset", "replicate", "part-00000*")...)
	listedNodes(t, control, sum(4))
	must(t, at("dataset", "replicate")...)
	listedNodes(t, control, sum(6))
	var v verifyView
	require.NoError(t, json.Unmarshal([]byte(must(t, at("dataset", "verify", "--deep", "--replicas", "2")...)), &v))
	assert.Len(t, v.Copies, 6)
	assert.Equal(t, 2, v.Fewest)

	var jobRows struct {
		Rows int64 `json:"rows"`
	}
	out := must(t, at("train", "--pipeline", "rm1", "--batch", "256", "--trainer-rows-per-second", "1e6", "--measure", "10ms")...)
	require.NoError(t, json.Unmarshal([]byte(out), &jobRows))
	assert.EqualValues(t, 900, jobRows.Rows, "each row once, however many copies there are")

	must(t, at("drive", "retire", "n0/d0")...)
	for _, bad := range [][]string{{"drive", "retire", "n0"}, {"dataset", "place"}, {"dataset", "place", "--replicas", "0", files[0]}, {"dataset", "verify", "["}} {
		code, _, _ := millrace(t, at(bad...)...)
		assert.Equal(t, exitUsage, code, strings.Join(bad, " "))
	}
	code, _, errs = millrace(t, at("drive", "retire", "n7/d0")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no such drive")
}
