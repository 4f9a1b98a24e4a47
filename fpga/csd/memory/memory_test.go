package memory

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestZeroAnywhere(t *testing.T) {
	m, free, err := Map(64 << 10)
	require.NoError(t, err)
	defer func() { assert.NoError(t, free()) }()
	for _, span := range [][2]int{{0, 64 << 10}, {1, 2}, {100, 9000}, {4096, 8192}, {4095, 8193}, {5, 5}} {
		for i := range m {
			m[i] = 1
		}
		Zero(m[span[0]:span[1]])
		want := bytes.Repeat([]byte{1}, len(m))
		clear(want[span[0]:span[1]])
		require.True(t, bytes.Equal(want, m), "%v", span)
	}
	_, _, err = Map(-1)
	require.Error(t, err)
}
