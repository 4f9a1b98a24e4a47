//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// begin starts millrace in a process of its own, and returns it and what reads its standard output and its error
// output.
func begin(t *testing.T, args ...string) (cmd *exec.Cmd, out, errs io.ReadCloser) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var err error
	out, err = cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err = cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out, errs
}

// readUntil reads until a text comes.
func readUntil(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var all strings.Builder
	for b := make([]byte, 1); !strings.Contains(all.String(), text); {
		_, err := r.Read(b)
		require.NoError(t, err, all.String())
		all.Write(b)
	}
}

// longTraining are the arguments of a job of minutes that keeps a token.
func longTraining(t *testing.T, token string) []string {
	t.Helper()
	return []string{"train", "--pipeline", "rm1", "--in", generate(t, "--rows", "3000"), "--batch", "100", "--measure",
		"1ms", "--trainer-rows-per-second", "200", "--progress", "json", "--checkpoint", token}
}

// TestNobodyReads: when the reader of the output is gone, a job ends in order and keeps its token, which an end by
// SIGPIPE would lose. Nothing more is said.
func TestNobodyReads(t *testing.T) {
	t.Run("error output", func(t *testing.T) {
		token := filepath.Join(t.TempDir(), "token")
		cmd, _, errs := begin(t, longTraining(t, token)...)
		readUntil(t, errs, `"done":`)
		require.NoError(t, errs.Close())
		assert.Equal(t, exitUnread, exitStatus(t, cmd))
		left, _, err := readToken(token)
		require.NoError(t, err)
		require.NotNil(t, left)
		assert.NotEmpty(t, left.Acknowledged()) // in any order
	})
	t.Run("results", func(t *testing.T) {
		cmd, out, errs := begin(t, "version")
		require.NoError(t, out.Close())
		said, err := io.ReadAll(errs)
		require.NoError(t, err)
		assert.Empty(t, string(said))
		if status := exitStatus(t, cmd); status != exitDone { // it may have written before the reader was gone
			assert.Equal(t, exitUnread, status)
		}
	})
}

// exitStatus waits for a process that ends by itself and returns its exit status.
func exitStatus(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Exited(), "ended by %v", status.Signal())
	return status.ExitStatus()
}

// TestHangUp: the end of the terminal is an interrupt, also if the shell says it twice.
func TestHangUp(t *testing.T) {
	// Another test may have had this process ignore hang-ups, as millrace private does, and its children with it.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	token := filepath.Join(t.TempDir(), "token")
	cmd, _, errs := begin(t, longTraining(t, token)...)
	readUntil(t, errs, `"done":`)
	for range 2 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	}
	_, err := io.Copy(io.Discard, errs)
	require.NoError(t, err)
	assert.Equal(t, exitFailed, exitStatus(t, cmd))
	assert.FileExists(t, token)
}
