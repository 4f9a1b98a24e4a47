//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// benchProcess runs millrace in a process of its own, with a script in the place of millrace-bench on the PATH, and
// returns the exit status and the outputs.
func benchProcess(t *testing.T, script string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	folder := t.TempDir()
	if script != "" {
		require.NoError(t, os.WriteFile(filepath.Join(folder, benchProgram), []byte("#!/bin/sh\n"+script), 0o755))
	}
	t.Setenv("PATH", folder)
	cmd, out, errs := begin(t, args...)
	printed, err := io.ReadAll(out)
	require.NoError(t, err)
	said, err := io.ReadAll(errs)
	require.NoError(t, err)
	return exitStatus(t, cmd), string(printed), string(said)
}

// TestBenchIsAnotherProgram checks that the program has the arguments and the streams, and that its exit status is that
// of millrace.
func TestBenchIsAnotherProgram(t *testing.T) {
	const echo = "echo \"$@\"; echo said >&2; exit 7"
	for want, args := range map[string][]string{
		"bench rm --models rm1 --output json\n": {"bench", "rm", "--models", "rm1", "--output", "json"},
		"bench --wide rm -h\n":                  {"--wide", "bench", "rm", "-h"},
		"bench --help\n":                        {"help", "bench"},
		"bench rm --help\n":                     {"help", "bench", "rm"},
	} {
		status, out, errs := benchProcess(t, echo, args...)
		assert.Equal(t, 7, status)
		assert.Equal(t, want, out)
		assert.Equal(t, "said\n", errs)
	}
}

// TestBenchIsCompletedByTheProgram checks that completions and their directive are those of the program.
func TestBenchIsCompletedByTheProgram(t *testing.T) {
	const script = "[ \"$*\" = '__complete bench rm --mod' ] && printf -- '--models\\tworkloads\\n:4\\n'"
	_, out, _ := benchProcess(t, script, "__complete", "bench", "rm", "--mod")
	assert.Equal(t, "--models\tworkloads\n:4\n", out)
	_, out, _ = benchProcess(t, "exit 1", "__complete", "bench", "rm", "--mod")
	assert.Equal(t, ":1\n", out)
}

// TestBenchIsAbsent checks that the error says which program is missing and where both are.
func TestBenchIsAbsent(t *testing.T) {
	status, out, errs := benchProcess(t, "", "bench", "rm")
	assert.Equal(t, exitFailed, status)
	assert.Empty(t, out)
	errorLine(t, errs, "the program millrace-bench is not in the folder "+filepath.Dir(os.Args[0]), "make build")
	_, err := exec.LookPath(benchProgram)
	require.Error(t, err)
}
