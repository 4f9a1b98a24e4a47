//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFollowPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	var cause error
	p := followReader(w, func(err error) { cause = err })
	_, err = p.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = p.Write([]byte("x"))
	require.ErrorIs(t, err, errNobodyReads)
	require.ErrorIs(t, cause, errNobodyReads)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	assert.Same(t, f, followReader(f, nil), "a file has no reader, and a terminal has its hang-up")
}
