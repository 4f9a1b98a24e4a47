package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr/remote"
)

// replaced is a control plane that was lost under a running job and restored from a backup that was taken in the middle
// of the job.
type replaced struct {
	c        *remote.Client
	job      *apiv1.JobStatus
	want     *result
	got      *result // of the launcher that was there from the beginning
	launcher *remote.Job
	token    []byte // as of the backup
	before   uint64 // the last fence of the control plane that is lost
	node     *node.Agent
}

// replace runs a job up to mini-batch 7, takes a backup, goes on to mini-batch 12, loses the control plane with its
// disk, and restores it.
func replace(t *testing.T) *replaced {
	data := files(t, 700, 401)
	r := &replaced{want: onOneMachine(t, data, 1), got: newResult()}
	o := controlOptions(t.TempDir())
	o.Listen = freePorts(t, 1)[0]
	lost, err := control.Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, lost.WaitReady(t.Context()))
	config := nodeConfig("n0", []string{lost.URL()}, makeDrive(t, "file", data))
	config.StateDir = t.TempDir()
	r.node = startNode(t, config, node.Options{})
	t.Cleanup(func() { assert.NoError(t, r.node.Close()) })
	r.c = dial(t, lost.URL())
	awaitPartitions(t, r.c, map[string]bool{"n0": true}, len(data))
	r.job, err = r.c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan()})
	require.NoError(t, err)
	r.launcher, err = r.c.Attach(t.Context(), r.job.Id, remote.AttachOptions{})
	require.NoError(t, err)
	r.take(t, r.launcher, r.got, 7)
	require.NoError(t, r.launcher.Flush(t.Context()))
	r.token, err = r.launcher.Checkpoint(t.Context())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "control.snapshot")
	backup, err := store.SaveBackup(path, func(w io.Writer) error { _, err := r.c.Backup(t.Context(), w); return err })
	require.NoError(t, err)
	require.Equal(t, 1, backup.Jobs)
	require.Equal(t, 1, backup.Nodes)
	r.take(t, r.launcher, r.got, 5)
	require.NoError(t, r.launcher.Flush(t.Context()))
	r.before = fenceOf(t, r.node)
	require.Positive(t, r.before)
	require.NoError(t, lost.Close())
	require.NoError(t, os.RemoveAll(o.Data))

	o.Data = filepath.Join(t.TempDir(), "new")
	restored, err := store.Restore(store.RestoreOptions{File: path, Data: o.Data, Logger: o.Logger})
	require.NoError(t, err)
	require.Greater(t, restored.Fence, r.before)
	_, err = store.Restore(store.RestoreOptions{File: path, Data: o.Data})
	require.ErrorIs(t, err, os.ErrExist)
	startControl(t, o)
	require.Eventually(t, func() bool { return fenceOf(t, r.node) > restored.Fence }, time.Minute, 20*time.Millisecond)
	return r
}

// take delivers n mini-batches and acknowledges them. If n is below 0 it delivers all that are left.
func (r *replaced) take(t *testing.T, j *remote.Job, to *result, n int) {
	t.Helper()
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		to.add(t, mb)
		if n--; n == 0 {
			require.NoError(t, j.Acknowledge(mb.Name))
			return
		}
	}
}

// TestALauncherGoesOnOverARestoredControlPlane: the launcher remembers the mini-batches that it acknowledged after the
// backup, and gets none of them twice.
func TestALauncherGoesOnOverARestoredControlPlane(t *testing.T) {
	r := replace(t)
	r.take(t, r.launcher, r.got, -1)
	require.NoError(t, r.launcher.Close())
	check(t, r.want, r.got, false)
	awaitDone(t, r.c, r.job.Id)
}

// TestALauncherWithATokenOfBeforeARestore: the launcher continues at the token. It gets no mini-batch that was
// acknowledged before the backup, and all others.
func TestALauncherWithATokenOfBeforeARestore(t *testing.T) {
	r := replace(t)
	acknowledged := r.got.order[:7]
	_ = r.launcher.Close() // it was in the middle of an epoch
	j, err := r.c.Attach(t.Context(), r.job.Id, remote.AttachOptions{Token: r.token})
	require.NoError(t, err)
	again := newResult()
	r.take(t, j, again, -1)
	require.NoError(t, j.Close())
	for _, number := range acknowledged {
		assert.NotContains(t, again.order, number, "it was acknowledged before the backup")
	}
	assert.Len(t, again.sums, len(r.want.sums)-len(acknowledged))
	for name, sum := range again.sums {
		assert.Equal(t, r.want.sums[name], sum)
	}
	awaitDone(t, r.c, r.job.Id)
}

// TestALeaderOfBeforeARestoreIsRefused: a node refuses a call with the fence of a leader from before the restore, since
// the node has seen a greater fence. The job goes on to its end.
func TestALeaderOfBeforeARestoreIsRefused(t *testing.T) {
	r := replace(t)
	client := apiv1connect.NewNodeClient(http.DefaultClient, r.node.URLs()[0])
	ctx, info := connect.NewClientContext(t.Context())
	info.RequestHeader().Set(apiv1.FenceHeader, fmt.Sprint(r.before))
	_, err := client.Finish(ctx, &apiv1.FinishRequest{Job: r.job.Digest})
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, fmt.Sprintf("its fence is %d", r.before))
	r.take(t, r.launcher, r.got, -1)
	require.NoError(t, r.launcher.Close())
	check(t, r.want, r.got, false)
}
