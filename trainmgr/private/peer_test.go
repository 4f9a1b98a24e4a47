package private

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

func skipPeers(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		shared.Missing(t, "processes are watched on Linux only")
	}
}

func TestTheEndOfAProcessIsSeen(t *testing.T) {
	skipPeers(t)
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, awaitProcessEnd(expired, cmd.Process.Pid), "it runs")
	ended := make(chan bool, 1)
	go func() { ended <- awaitProcessEnd(context.Background(), cmd.Process.Pid) }()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for goroutine := range strings.SplitSeq(string(stacks), "\n\n") {
			state, _, _ := strings.Cut(goroutine, "\n")
			if strings.Contains(goroutine, "private.awaitProcessEnd(") && strings.Contains(state, "[IO wait") {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond, "it does not wait for the process")
	require.Empty(t, ended, "it runs")
	require.NoError(t, cmd.Process.Kill())
	assert.True(t, <-ended)
	_ = cmd.Wait()
	assert.True(t, awaitProcessEnd(context.Background(), cmd.Process.Pid), "it has ended before")
}

func TestAWatchEnds(t *testing.T) {
	skipPeers(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() { ended <- awaitProcessEnd(ctx, os.Getpid()) }()
	cancel()
	assert.False(t, <-ended)
}

func TestAnInheritedConnectionKnowsWhoMadeIt(t *testing.T) {
	skipPeers(t)
	ours, theirs := socketpair(t)
	uid, pid, err := peerCredentials(theirs)
	require.NoError(t, err)
	assert.Equal(t, os.Getuid(), uid)
	assert.Equal(t, os.Getpid(), pid)
	require.NoError(t, ours.Close())
	require.NoError(t, theirs.Close())
}

func TestWhatIsNoConnection(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	_, _, err = Inherited(file)
	require.ErrorIs(t, err, ErrNotInherited)
	require.ErrorContains(t, err, "millrace.open")
	// A socket over which no process speaks the protocol.
	ours, theirs := socketpair(t)
	_, err = ours.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.NoError(t, ours.CloseWrite())
	require.ErrorIs(t, Serve(t.Context(), theirs, Options{}), ErrProtocol)
	// A trainer that ends without a word is not an error.
	ours, theirs = socketpair(t)
	require.NoError(t, ours.Close())
	require.NoError(t, Serve(t.Context(), theirs, Options{}))
}
