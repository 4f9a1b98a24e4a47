package site

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTerminate ends a process, and again when it has ended.
func TestTerminate(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run", "^TestThatWaits$", "-test.timeout", "1m")
	cmd.Env = append(os.Environ(), waits+"=1")
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, terminate(cmd.Process.Pid))
	require.Error(t, cmd.Wait(), "it was asked to end")
	require.NoError(t, terminate(cmd.Process.Pid), "it has ended")
}

// waits names the variable of the environment with which TestThatWaits waits.
const waits = "MILLRACE_TEST_WAITS"

// TestThatWaits is the process that TestTerminate ends: it waits for the end of its input.
func TestThatWaits(t *testing.T) {
	if os.Getenv(waits) == "" {
		t.Skip("only for TestTerminate")
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}
