package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
)

// nodesOf runs a given number of storage nodes of one empty drive each under a control plane, until the test ends.
func nodesOf(t *testing.T, control string, n int) []*node.Agent {
	t.Helper()
	return moreNodes(t, control, 0, n)
}

// moreNodes runs n further nodes, the first of which is called by the number.
func moreNodes(t *testing.T, control string, first, n int) []*node.Agent {
	t.Helper()
	var agents []*node.Agent
	for i := first; i < first+n; i++ {
		drive := "file:" + filepath.Join(t.TempDir(), "d.flash")
		must(t, "drive", "create", drive+"?size=8MiB&slm=64MiB")
		c := node.DefaultConfig()
		c.Name, c.Listen, c.Control, c.Measure = "n"+string(rune('0'+i)), []string{"127.0.0.1:0"}, []string{control},
			node.Duration(time.Millisecond)
		c.Drives = []node.DriveConfig{{Name: "d0", URI: drive}}
		a, err := node.Start(context.Background(), c, node.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, a.Close()) })
		agents = append(agents, a)
	}
	listedNodes(t, control, func(nodes []nodeView) bool {
		ready := 0
		for _, v := range nodes {
			if v.Name >= "n"+string(rune('0'+first)) && v.State == "ready" && len(v.Drives) == 1 &&
				v.Drives[0].State == "ready" {
				ready++
			}
		}
		return ready == n
	})
	return agents
}

// listedNodes waits until the nodes are as they should be.
func listedNodes(t *testing.T, control string, as func([]nodeView) bool) {
	t.Helper()
	awaitJSON(t, as, "nodes", "list", "--control", control)
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
	var copies []copyResult
	require.NoError(t,
		json.Unmarshal([]byte(must(t, at(append([]string{"dataset", "place", "--dry-run"}, files...)...)...)), &copies))
	require.Len(t, copies, 3)
	assert.False(t, copies[0].Done)
	days := filepath.Join(t.TempDir(), "rows") // dataset place names partitions as preprocess does
	for i, day := range []string{"day=1", "day=2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(days, day), 0o755))
		require.NoError(t, os.Link(files[i], filepath.Join(days, day, "part-0.parquet")))
	}
	for _, in := range [][]string{{days + "/*"}, {days + "/*", "--root", filepath.Dir(days)}} {
		var names []string
		for _, k := range decode[[]copyResult](t, must(t,
			at(append([]string{"dataset", "place", "--dry-run", "--prefix", "p/"}, in...)...)...)) {
			names = append(names, k.Partition)
		}
		below := map[int]string{1: "p/", 3: "p/rows/"}[len(in)]
		assert.ElementsMatch(t, []string{below + "day=1/part-0.parquet", below + "day=2/part-0.parquet"}, names)
	}
	require.NoError(t,
		json.Unmarshal([]byte(must(t, at(append([]string{"dataset", "place"}, files...)...)...)), &copies))
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
	assert.Contains(t, errs, "copies are missing of 3 partitions (millrace dataset replicate makes them)")
	require.NoError(t,
		json.Unmarshal([]byte(must(t, at(append([]string{"dataset", "place"}, files...)...)...)), &copies))
	assert.Empty(t, copies, "the same files again: nothing is done")
	other := filepath.Join(t.TempDir(), "part-00000.parquet")
	must(t, "dataset", "generate", "--rows", "70", "--out", filepath.Dir(other), "--seed", "9")
	code, _, errs = millrace(t, at("dataset", "place", other)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "another file of the name is placed already")
	assert.Contains(t, errs, "--prefix")
	must(t, at("dataset", "replicate", "--replicas", "2", "part-00000*")...)
	listedNodes(t, control, sum(4))
	must(t, at("dataset", "replicate")...)
	listedNodes(t, control, sum(4)) // each has its number
	must(t, at("dataset", "replicate", "--replicas", "2")...)
	listedNodes(t, control, sum(6))
	var v verifyView
	require.NoError(t, json.Unmarshal([]byte(must(t, at("dataset", "verify", "--deep", "--replicas", "2")...)), &v))
	assert.Len(t, v.Copies, 6)
	assert.Equal(t, 2, v.Fewest)

	var jobRows struct {
		Rows int64 `json:"rows"`
	}
	out := must(t,
		at("train", "--pipeline", "rm1", "--batch", "256", "--trainer-rows-per-second", "1e6", "--measure", "10ms")...)
	require.NoError(t, json.Unmarshal([]byte(out), &jobRows))
	assert.EqualValues(t, 900, jobRows.Rows, "each row once, however many copies there are")

	code, _, errs = millrace(t, at("drive", "retire", "n0/d0")...)
	assert.Equal(t, exitFailed, code, "two copies are wanted of each, and there is one other drive")
	assert.Contains(t, errs, "is to have 2 copies and can have")
	code, _, errs = millrace(t, at("drive", "retire", "n0/d0", "--replicas", "1")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "without drive n0/d0 copies are missing of 3 partitions, because --replicas 1 is below")
	must(t, at("dataset", "replicate", "--replicas", "1")...)
	must(t, at("drive", "retire", "n0/d0")...)
	for _, bad := range [][]string{
		{"drive", "retire", "n0"}, {"dataset", "place"}, {"dataset", "place", "--replicas", "0", files[0]},
		{"dataset", "verify", "["},
	} {
		code, _, _ := millrace(t, at(bad...)...)
		assert.Equal(t, exitUsage, code, strings.Join(bad, " "))
	}
	code, _, errs = millrace(t, at("drive", "retire", "n7/d0")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no such drive")
}

// TestRetireKeepsTheNumberOfCopies: files placed twice are twice there without the drive that is retired, whatever its
// flags do not say; a node that is lost makes verify fail, with what it misses, and replicate mends it.
func TestRetireKeepsTheNumberOfCopies(t *testing.T) {
	data := generate(t, "--rows", "900", "--partitions", "3")
	control := controlRun(t)
	agents := nodesOf(t, control, 3)
	at := func(args ...string) []string {
		return append(args, "--control", control, "--output", "json", "--progress", "none")
	}
	verify := func() (code int, v verifyView, errs string) {
		code, out, errs := millrace(t, at("dataset", "verify")...)
		require.NoError(t, json.Unmarshal([]byte(out), &v), errs)
		return code, v, errs
	}
	files := []string{data + "/part-00000.parquet", data + "/part-00001.parquet", data + "/part-00002.parquet"}
	must(t, at(append([]string{"dataset", "place", "--replicas", "2"}, files...)...)...)
	code, v, errs := verify()
	require.Equal(t, 0, code, errs)
	assert.Equal(t, []int{2, 2}, v.Wanted, "verify knows, without a flag")
	assert.Equal(t, 2, v.Fewest)
	assert.Empty(t, v.OneNode)

	must(t, at("drive", "retire", "n0/d0")...)
	require.NoError(t, agents[0].Close(), "its only drive may be taken out")
	listedNodes(t, control, func(nodes []nodeView) bool { return nodes[0].State == "dead" })
	code, v, errs = verify()
	require.Equal(t, 0, code, errs)
	assert.Equal(t, 2, v.Fewest, "still two copies of each")

	require.NoError(t, agents[1].Close())
	listedNodes(t, control, func(nodes []nodeView) bool { return nodes[1].State == "dead" })
	code, v, errs = verify()
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "copies are missing of 3 partitions")
	assert.Len(t, v.Short, 3)
	assert.Len(t, v.OneNode, 3)
	code, _, errs = millrace(t, at("dataset", "replicate")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "not enough drives")
	moreNodes(t, control, 3, 1)
	must(t, at("dataset", "replicate")...)
	code, v, errs = verify()
	require.Equal(t, 0, code, errs)
	assert.Equal(t, 2, v.Fewest)
	assert.Empty(t, v.OneNode)

	require.NoError(t, agents[2].Close())
	listedNodes(t, control, func(nodes []nodeView) bool { return nodes[2].State == "dead" })
	must(t, at("dataset", "replicate", "--replicas", "1", "part-00000*")...)
	code, out, errs := millrace(t, "dataset", "verify", "--control", control, "--progress", "none")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "copies are missing of 2 partitions")
	assert.Contains(t, out, "part-00001.parquet (1 of 2), part-00002.parquet (1 of 2)")
	assert.Contains(t, out, "1 to 2")
	assert.Regexp(t, `on one node only +part-00000.parquet, part-00001.parquet, part-00002.parquet`, out)
}

// TestPartitionsThatAreGoneAreNamed checks that partitions that were placed and lie on no node that answers are
// named.
func TestPartitionsThatAreGoneAreNamed(t *testing.T) {
	data := generate(t, "--rows", "200")
	control := controlRun(t)
	agents := nodesOf(t, control, 2)
	must(t, "dataset", "place", "--control", control, data+"/part-00000.parquet")
	holder := 0
	listedNodes(t, control, func(nodes []nodeView) bool {
		if nodes[1].Partitions == 1 {
			holder = 1
		}
		return nodes[0].Partitions+nodes[1].Partitions == 1
	})
	require.NoError(t, agents[holder].Close())
	listedNodes(t, control, func(nodes []nodeView) bool { return nodes[holder].State == "dead" })
	code, out, errs := millrace(t, "dataset", "verify", "--control", control, "--progress", "none")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no node that answers has 1 partition")
	assert.Contains(t, out, "part-00000.parquet (0 of 1)")
	must(t, "dataset", "replicate", "--control", control, "--replicas", "0", "part-*")
	must(t, "dataset", "verify", "--control", control)
	must(t, "dataset", "place", "--control", control, data+"/part-00000.parquet")
	must(t, "dataset", "verify", "--control", control)
}

// TestPlaceBeforeTheNodesAreThere: the commands of the README, one right after the other.
func TestPlaceBeforeTheNodesAreThere(t *testing.T) {
	data := generate(t, "--rows", "200")
	control := controlRun(t)
	code, _, errs := millrace(t, "dataset", "place", "--control", control, "--patience", "10ms", data+
		"/part-00000.parquet")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no storage node with a drive answers")
	placed := make(chan string)
	go func() {
		_, _, errs := millrace(t, "dataset", "place", "--control", control, "--patience", "2m", data+
			"/part-00000.parquet")
		placed <- errs
	}()
	nodesOf(t, control, 1)
	assert.NotContains(t, <-placed, "millrace: ")
	must(t, "dataset", "verify", "--control", control)
	code, _, errs = millrace(t, "dataset", "place", "--control", control, "--replicas", "2", data+"/part-00000.parquet")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs,
		"is to have 2 copies and can have 1: not enough drives: every copy lies on a drive of its own, and there is "+
			"1 drive that takes partitions")
}
