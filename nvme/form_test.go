package nvme

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheLostLog holds log page C2h, which names the blocks that a drive has lost.
func TestFormOfTheLostLog(t *testing.T) {
	lost := []LostRange{{SLBA: 8, Blocks: 1}, {SLBA: 1 << 40, Blocks: 1 << 20}}
	goldenfile.Bytes(t, "testdata/lost.v1.hex", MarshalLost(lost)[:LostHeaderSize+len(lost)*LostRangeSize])
	got, err := UnmarshalLost(goldenfile.Read(t, "testdata/lost.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, lost, got)
}
