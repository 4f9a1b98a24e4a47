package worker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/dataset"
)

// serveCard serves a drive without flash at an address, always under the same name, and returns its URI. end stops it
// like a crash: no command under way completes.
func serveCard(t *testing.T, listen string) (uri string, end func()) {
	t.Helper()
	served, err := target.Start(target.Options{
		Drive: csd.Options{Diskless: true, SLMBytes: 32 << 20,
			NQN: "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-666666666666"},
		Listen: listen, ShutdownTime: time.Millisecond,
	})
	require.NoError(t, err)
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = served.Close() // commands that did not complete are an error
		}
	}
	t.Cleanup(end)
	return served.URI(), end
}

// workWithCard makes a worker whose mini-batches a drive computes.
func workWithCard(t *testing.T, uri string) *fixture {
	return startWorker(t, func(c *Config) { c.Drive, c.Threads = uri, 0 })
}

// TestADriveComputesForAWorker: the frames are the holder's, whichever command set the drive has. The status names a
// drive that computes, and the report says that the host fed it.
func TestADriveComputesForAWorker(t *testing.T) {
	holder, _ := startHolder(t, "n0", content(t))
	uri, _ := serveCard(t, "127.0.0.1:0")
	for _, uri := range []string{uri, uri + "?commands=standard", "mem:?size=0&slm=64MiB"} {
		f := workWithCard(t, uri)
		j := describeJob(t, holder, dataset.Options{SplitBatches: 4})
		f.placeAll(j, copyAt("n0", holder.URLs()...))
		f.prepare(j)
		f.sameAsHolder(j, holder)
		d := f.leader.drive()
		assert.Equal(t, []string{CardName, "any", "card"}, []string{d.Name, d.Reach, d.ComputesOn})
		assert.True(t, d.Computes)
		assert.NotEmpty(t, d.Image)
		report, err := f.node.Report(t.Context(), &apiv1.ReportRequest{Job: j.Digest[:]})
		require.NoError(t, err)
		assert.Contains(t, string(report.Drives[0]), "fed by the host")
	}
}

// TestADriveOfAWorkerThatDies: a split whose drive dies fails with unavailable, so that another worker can make it. The
// worker reports the state failed while its drive is away. When the drive is back, the worker is ready again and makes
// all mini-batches of the job that was prepared before.
func TestADriveOfAWorkerThatDies(t *testing.T) {
	leaks.Check(t)
	holder, _ := startHolder(t, "n0", content(t))
	uri, end := serveCard(t, "127.0.0.1:0")
	f := workWithCard(t, uri)
	j := describeJob(t, holder, dataset.Options{SplitBatches: 100})
	f.placeAll(j, copyAt("n0", holder.URLs()...))
	f.prepare(j)
	status, b := f.fetch(f.base, j, CardName, 0, 21)
	require.Equal(t, http.StatusOK, status, "%s", b)
	end()
	f.awaitState("failed: ")
	status, b = f.fetch(f.base, j, CardName, 20, 21)
	require.Equal(t, http.StatusServiceUnavailable, status, "%s", b)
	assert.Contains(t, string(b), "unavailable")
	address, _, _ := strings.Cut(strings.TrimPrefix(uri, "tcp://"), "/")
	_, _ = serveCard(t, address)
	f.awaitState("ready")
	f.sameAsHolder(j, holder)

	// The job can be finished on the drive that came back.
	_, err := f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: j.Digest[:]})
	require.NoError(t, err)
}
