package hook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script makes a hook that runs a shell script in a folder of its own. $DIR is the folder.
func script(t *testing.T, o Options, text string) (*Hook, string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hook.sh")
	require.NoError(t, os.WriteFile(path, []byte("DIR="+dir+"\n"+text), 0o700))
	o.Command = "sh " + path
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	return New(o), dir
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestTheCommandIsToldWhatToDo(t *testing.T) {
	h, dir := script(t, Options{}, `env | grep ^MILLRACE_WORKER_ | sort > $DIR/told`)
	require.NoError(t, h.Run(t.Context(), Call{Action: Start, Names: []string{"pool-1", "pool-2"},
		Jobs: []string{"ads-1", "news-2"}, Control: "http://127.0.0.1:7460"}))
	assert.Equal(t, `MILLRACE_WORKER_ACTION=start
MILLRACE_WORKER_CONTROL=http://127.0.0.1:7460
MILLRACE_WORKER_COUNT=2
MILLRACE_WORKER_JOBS=ads-1 news-2
MILLRACE_WORKER_NAMES=pool-1 pool-2
`, read(t, filepath.Join(dir, "told")))
}

func TestAFailureIsTriedAgain(t *testing.T) {
	const failing = `echo x >> $DIR/runs; echo "no room in $MILLRACE_WORKER_ACTION" >&2; exit 3`
	h, dir := script(t, Options{Attempts: 4}, failing)
	err := h.Run(t.Context(), Call{Action: Stop, Names: []string{"pool-1"}})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "worker hook: stop pool-1: 4 attempts: exit status 3: it wrote \"no room in stop\"")
	assert.Equal(t, 4, strings.Count(read(t, filepath.Join(dir, "runs")), "x"))

	h, dir = script(t, Options{Attempts: 4}, `echo x >> $DIR/runs; [ $(wc -l < $DIR/runs) -ge 3 ]`)
	require.NoError(t, h.Run(t.Context(), Call{Action: Start, Names: []string{"pool-1"}}))
	assert.Equal(t, 3, strings.Count(read(t, filepath.Join(dir, "runs")), "x"))
}

// TestACommandThatHangsIsKilled: a command that exceeds its timeout is killed, together with its child. The timeout
// doubles until the command has started its child in time.
func TestACommandThatHangsIsKilled(t *testing.T) {
	var child []byte
	for timeout := 300 * time.Millisecond; child == nil; timeout *= 2 {
		h, dir := script(t, Options{Attempts: 1, Timeout: timeout},
			`sh -c 'echo $$ > '$DIR'/child.partial; mv '$DIR'/child.partial '$DIR'/child; sleep 600' & wait`)
		err := h.Run(t.Context(), Call{Action: Start, Names: []string{"pool-1"}})
		require.ErrorIs(t, err, ErrTimeout)
		child, err = os.ReadFile(filepath.Join(dir, "child"))
		require.True(t, err == nil || timeout < time.Minute, "the command has not started its child: %v", err)
	}
	var pid int
	_, err := fmt.Sscan(string(child), &pid)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
	})
	require.Eventually(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, time.Minute, 10*time.Millisecond, "the command's child lives")
}

// TestWhatTheCommandStartsMayLive: a worker that the command leaves behind keeps the command's output open.
func TestWhatTheCommandStartsMayLive(t *testing.T) {
	h, dir := script(t, Options{Attempts: 1}, `sleep 600 & echo $! > $DIR/worker`)
	require.NoError(t, h.Run(t.Context(), Call{Action: Start, Names: []string{"pool-1"}}))
	pid := 0
	_, err := fmt.Sscan(read(t, filepath.Join(dir, "worker")), &pid)
	require.NoError(t, err)
	worker, err := os.FindProcess(pid)
	require.NoError(t, err)
	assert.NoError(t, worker.Kill(), "it was there to be killed")
}

func TestRunsAreBounded(t *testing.T) {
	h, dir := script(t, Options{Concurrent: 2}, `
mkdir $DIR/run.$$; ls -d $DIR/run.* | wc -l >> $DIR/seen; sleep 0.05; rmdir $DIR/run.$$`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			assert.NoError(t, h.Run(t.Context(), Call{Action: Start, Names: []string{fmt.Sprint("pool-", i)}}))
		})
	}
	wg.Wait()
	for _, n := range strings.Fields(read(t, filepath.Join(dir, "seen"))) {
		assert.Contains(t, []string{"1", "2"}, n, "runs at once")
	}
}

func TestACallerThatEnds(t *testing.T) {
	h, _ := script(t, Options{Backoff: time.Hour}, `exit 1`)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	err := h.Run(ctx, Call{Action: Start, Names: []string{"pool-1"}})
	assert.Error(t, err)
	assert.ErrorIs(t, h.Run(ctx, Call{Action: Start}), context.Canceled)
}

func TestOnlyTheEndOfTheOutputIsKept(t *testing.T) {
	var kept tail
	for range 3 {
		_, _ = kept.Write([]byte(strings.Repeat("a", maxOutput/2) + "\n"))
	}
	_, _ = kept.Write([]byte("last \xff line\n"))
	assert.Len(t, kept.kept, maxOutput)
	assert.Equal(t, "last ? line", kept.lastLine())
}
