package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr/remote"
)

// loadOf returns the share of its machine's processors that a worker says it uses; 0: not known.
func loadOf(t *testing.T, c *remote.Client, name string) float64 {
	t.Helper()
	list, err := c.Nodes(t.Context())
	require.NoError(t, err)
	for _, n := range list {
		if n.GetStatus().GetName() == name {
			return n.Status.Load.GetCpu()
		}
	}
	return 0
}

// TestIdleWorkersEndBesideABusyNeighbour runs two idle workers on a machine whose processors other processes use, one
// more than the pool keeps. The hook stops one of the two. A worker that is left says how little it uses itself.
func TestIdleWorkersEndBesideABusyNeighbour(t *testing.T) {
	for range runtime.NumCPU() {
		busy := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		require.NoError(t, busy.Start())
		t.Cleanup(func() {
			assert.NoError(t, busy.Process.Kill())
			_ = busy.Wait() // it was killed
		})
	}
	stopped := filepath.Join(t.TempDir(), "stopped")
	o := controlOptions(t.TempDir())
	o.WorkerHook = `[ "$MILLRACE_WORKER_ACTION" = start ] || echo $MILLRACE_WORKER_NAMES >> ` + stopped
	o.WorkersLeast, o.WorkersMost, o.WorkerIdle = 1, 4, 2*time.Second
	s := startControl(t, o)
	workers := []string{"pool-0-1", "pool-0-2"}
	for _, name := range workers {
		conf := workerConfig(name, []string{s.URL()})
		start(t, role{Worker: &conf})
	}
	c := dial(t, s.URL())
	awaitReady(t, c, workers[0])
	names := func() []string {
		b, _ := os.ReadFile(stopped) // it does not exist before the hook is called
		return strings.Fields(string(b))
	}
	require.Eventually(t, func() bool { return len(names()) > 0 }, 2*time.Minute, 20*time.Millisecond)
	require.Len(t, names(), 1)
	assert.Contains(t, workers, names()[0])
	left := workers[0]
	if names()[0] == left {
		left = workers[1]
	}
	require.Eventually(t, func() bool {
		load := loadOf(t, c, left)
		return load > 0 && load < 0.5
	}, time.Minute, 20*time.Millisecond)
}
