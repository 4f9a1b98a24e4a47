package endtoend

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr/remote"
)

// regionConfig returns the configuration of a node over the regions of a drive in a file, called d0, d1, ...
func regionConfig(t testing.TB, name string, members []string, files map[string][]byte, regions int) node.Config {
	t.Helper()
	uri := makeDriveOf(t, "file", fmt.Sprintf("size=8MiB&slm=128MiB&regions=%d", regions), files, nil)
	var uris []string
	for region := range regions {
		uris = append(uris, fmt.Sprintf("%s?slm=128MiB&region=%d", uri, region))
	}
	return nodeConfig(name, members, uris...)
}

// TestJobsInRegionsOfOneDrive: a node offers the regions of a drive as drives, and jobs of several launchers run in
// them at once. Each job gets what one machine gives, and each region makes a part of it.
func TestJobsInRegionsOfOneDrive(t *testing.T) {
	data := files(t, 2500, 2401, 1300)
	s := startControl(t, controlOptions(t.TempDir()))
	runNode(t, regionConfig(t, "n0", []string{s.URL()}, data, 3))
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	documents := []string{document, narrowDocument}
	var jobs []*remote.Job
	for i, text := range documents {
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: fmt.Sprint("job", i), Pipeline: []byte(text), Plan: plan(),
			Epochs: 2, TRowsPerSecond: 1e12}) // more than the regions make: all run
		require.NoError(t, err)
		launcher := dial(t, s.URL())
		j, err := launcher.Attach(t.Context(), st.Id, remote.AttachOptions{QueueBytes: 50_000})
		require.NoError(t, err)
		jobs = append(jobs, j)
	}
	var wg sync.WaitGroup
	got := []*result{newResult(), newResult()}
	for i, j := range jobs {
		wg.Go(func() {
			for mb, err := range j.MiniBatches(t.Context()) {
				if !assert.NoError(t, err) {
					return
				}
				assert.NotContains(t, got[i].sums, mb.Name, "it came twice")
				got[i].sums[mb.Name] = sum(mb)
			}
		})
	}
	wg.Wait()
	made := map[string]int64{}
	for i, j := range jobs {
		check(t, pipelineOnOneMachine(t, documents[i], data, 2), got[i], false)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		for _, d := range r.PerDrive {
			made[d.Name] += d.MiniBatches
		}
		require.NoError(t, j.Close())
	}
	assert.Len(t, made, 3)
	for region := range 3 {
		assert.Positive(t, made[fmt.Sprintf("n0/d%d", region)], "region %d: %v", region, made)
	}
}

// TestRegionsKeepDataSetsApart: a node lists some partitions in one region of a drive and others in another. A region
// takes one job at a time, and two jobs run at once, each in the region of its partitions alone.
func TestRegionsKeepDataSetsApart(t *testing.T) {
	data := files(t, 2500, 2401)
	s := startControl(t, controlOptions(t.TempDir()))
	conf := regionConfig(t, "n0", []string{s.URL()}, data, 2)
	for region, name := range names(data) {
		conf.Drives[region].Members, conf.Drives[region].Jobs = []string{name}, 1
	}
	runNode(t, conf)
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	var jobs []*remote.Job
	for _, name := range names(data) { // all are attached before any is consumed
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Partitions: []string{name}})
		require.NoError(t, err)
		j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{})
		require.NoError(t, err)
		jobs = append(jobs, j)
	}
	for region, name := range names(data) {
		got := newResult()
		for mb, err := range jobs[region].MiniBatches(t.Context()) {
			require.NoError(t, err)
			got.add(t, mb)
		}
		check(t, onOneMachine(t, map[string][]byte{name: data[name]}, 1), got, false)
		r, err := jobs[region].Report(t.Context())
		require.NoError(t, err)
		require.Len(t, r.PerDrive, 1)
		assert.Equal(t, fmt.Sprintf("n0/d%d", region), r.PerDrive[0].Name)
		require.NoError(t, jobs[region].Close())
	}
}

// TestARegionOfTwoNodes: a second node that names a region of a drive that another node has is refused, whichever
// region, and serves once the first has let go of the drive.
func TestARegionOfTwoNodes(t *testing.T) {
	data := files(t, 700)
	s := startControl(t, controlOptions(t.TempDir()))
	uri := makeDriveOf(t, "file", "size=8MiB&regions=2", data, nil)
	wire := serveDrive(t, uri, nil)
	first := startNode(t, nodeConfig("n0", []string{s.URL()}, wire+"?region=0"), node.Options{})
	c := dial(t, s.URL())
	awaitReady(t, c, "n0")
	runNode(t, nodeConfig("n1", []string{s.URL()}, wire+"?region=1"))
	require.Eventually(t, func() bool {
		list, err := c.Nodes(t.Context())
		require.NoError(t, err)
		for _, n := range list {
			if n.GetStatus().GetName() == "n1" {
				return strings.Contains(n.State, "all regions of a drive are one node's")
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, first.Close())
	awaitReady(t, c, "n1")
}

// TestANodeOfRegionsIsKilled: the process of a node over the regions of one drive is killed while two trainers take
// mini-batches of two jobs, and is started again. Both jobs get every mini-batch, with the bytes of one machine.
func TestANodeOfRegionsIsKilled(t *testing.T) {
	data := files(t, 2500, 2401, 1300)
	_, urls := startMembers(t, 1)
	conf := regionConfig(t, "n0", urls, data, 2)
	n := start(t, role{Node: &conf})
	c := dial(t, urls...)
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	var trainers []*process
	var models, ids []string
	documents := []string{document, narrowDocument}
	for i, text := range documents {
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: fmt.Sprint("job", i), Pipeline: []byte(text), Plan: plan(),
			TRowsPerSecond: 1e12})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "model")
		models, ids = append(models, path), append(ids, st.Id)
		trainers = append(trainers, start(t, role{Trainer: &trainer{Control: urls, Job: st.Id, Model: path, Every: 5,
			Step: 5 * time.Millisecond}}))
	}
	for _, path := range models { // both are in the middle
		require.Eventually(t, func() bool {
			m, err := readModel(path)
			require.NoError(t, err)
			return len(m.Steps) > 0
		}, time.Minute, 5*time.Millisecond)
	}
	n.kill()
	for _, path := range models {
		m, err := readModel(path)
		require.NoError(t, err)
		require.False(t, m.Done, "the job has not ended")
	}
	start(t, role{Node: &conf})
	for i, tr := range trainers {
		<-tr.done
		require.NoError(t, tr.err)
		digest := digestOf(t, c, ids[i])
		check(t, pipelineOnOneMachine(t, documents[i], data, 1), resultOf(t, digest, models[i]), false)
	}
}
