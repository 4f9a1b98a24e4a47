package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCountersAreSummedOverTheirLabels(t *testing.T) {
	const text = "# HELP bytes_total Bytes\nbytes_total{drive=\"d0\"} 1.5e+06\nbytes_total{drive=\"d 1\"} 7\n" +
		"bytes_total_of_all 9\nobjects 12\n"
	for name, want := range map[string]int64{"bytes_total": 1_500_007, "objects": 12, "none": 0} {
		n, err := sumOf(name, text)
		require.NoError(t, err)
		assert.Equal(t, want, n, name)
	}
	_, err := sumOf("bytes_total", "bytes_total{drive=\"d0\"} many\n")
	require.Error(t, err)
}

// shell is a program that runs a script of the shell.
func shell(script string) Program { return Program{Command: []string{"/bin/sh", "-c", script, "sh"}} }

func TestAProcessIsStartedWhenItHasPrintedItsDocument(t *testing.T) {
	var ready struct {
		URL string `json:"url"`
	}
	p, err := shell(`printf '{"url"'; sleep 0.1; echo ': "there", "arguments": "'$*'"}'; exec sleep 600`).
		Start(t.Context(), &ready, "control", "run")
	require.NoError(t, err)
	assert.Equal(t, "there", ready.URL)
	now, most := p.Resident()
	if _, err := os.Stat("/proc/self/status"); err == nil {
		assert.Positive(t, now)
		assert.GreaterOrEqual(t, most, now)
	}
	require.NoError(t, p.AwaitIdle(t.Context()), "it sleeps")
	p.Kill()
	p.Kill() // again
}

func TestAProcessThatEndsSaysWhy(t *testing.T) {
	_, err := shell("echo no disk >&2; exit 1").Start(t.Context(), new(any))
	require.ErrorContains(t, err, "no disk")
	_, err = Program{Command: []string{"/nowhere/millrace"}}.Start(t.Context(), new(any))
	require.ErrorContains(t, err, "/nowhere/millrace")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = shell("exec sleep 600").Start(ctx, new(any))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOutputIsBounded(t *testing.T) {
	var o output
	for range 3 {
		n, err := o.Write(make([]byte, maxOutput/2+1))
		require.NoError(t, err)
		assert.Equal(t, maxOutput/2+1, n)
	}
	assert.Equal(t, maxOutput, o.buf.Len())
}
