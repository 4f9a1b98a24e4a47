package endtoend

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/trainmgr/remote"
)

// writeFiles writes partitions to a folder of this machine.
func writeFiles(t testing.TB, files map[string][]byte) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), b, 0o600))
	}
	return folder
}

// TestTheOnlyNodeIsKilled kills the process of the only node in the middle of a job, and then the leader. A worker with
// files of its own machine, which no other worker reads, makes the rest. Every mini-batch comes once, with the bytes of
// one machine.
func TestTheOnlyNodeIsKilled(t *testing.T) {
	data := files(t, 1500, 1401)
	want := onOneMachine(t, data, 1)
	folder := writeFiles(t, data)
	for name, c := range map[string]struct {
		offload string
		serves  bool
	}{
		"the rank's own worker":   {"0.5", true},
		"a worker for every rank": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := controlOptions(t.TempDir())
			o.Logger, o.Listen, o.DeadAfter = nil, freePorts(t, 1)[0], 2*time.Second
			member := start(t, role{Member: &o})
			url := member.said[0]
			nodeConf := nodeConfig("n0", []string{url}, makeDrive(t, "file", data))
			n := start(t, role{Node: &nodeConf})
			client := dial(t, url)
			awaitPartitions(t, client, map[string]bool{"n0": true}, len(data))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			st, err := client.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Offload: c.offload})
			require.NoError(t, err)
			conf, serves := workerConfig("w0", []string{url}), (*worker.Rank)(nil)
			conf.Local = []string{folder}
			if c.serves {
				serves = &worker.Rank{Job: st.Id}
			}
			start(t, role{Worker: &conf, Serves: serves})
			awaitReady(t, client, "w0")
			j, err := client.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 40_000, Deadline: 2 * time.Second})
			require.NoError(t, err)
			got := newResult()
			for mb, err := range j.MiniBatches(ctx) {
				require.NoError(t, err)
				got.add(t, mb)
				switch len(got.sums) {
				case 10:
					n.kill()
				case 30:
					member.kill()
					start(t, member.role)
				}
			}
			require.NoError(t, j.Close())
			check(t, want, got, false)
			assert.Positive(t, awaitDone(t, client, st.Id).SplitsAny)
		})
	}
}
