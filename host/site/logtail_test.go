package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLogTail reads the end of logs, also of one that no memory holds.
func TestLogTail(t *testing.T) {
	s, d := &Site{o: options(t)}, daemon{name: "node"}
	assert.Empty(t, s.logTail(d), "there is no log")
	require.NoError(t, os.MkdirAll(filepath.Dir(s.logPath(d)), 0o700))
	write := func(b string) {
		f, err := os.OpenFile(s.logPath(d), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(b)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write("one\ntwo\n")
	assert.Equal(t, ": one; two", s.logTail(d))
	require.NoError(t, os.Truncate(s.logPath(d), 1<<40))
	write("\nthree\nfour\n")
	assert.Equal(t, ": three; four", s.logTail(d))
	write("five\nsix\nseven\n")
	assert.Equal(t, ": four; five; six; seven", s.logTail(d))
}
