package format

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfRecords compares the journal's three records and their keys with stored ones, and reads them.
func TestFormOfRecords(t *testing.T) {
	ranks := []Rank{{Fence: 1 << 40, Generation: 2, Epoch: 3}, {Fence: 5, Generation: 6, Epoch: 7}}
	goldenfile.Bytes(t, "testdata/ranks.v2.hex", EncodeRanks(9, ranks))
	gotRanks, err := DecodeRanks(goldenfile.Read(t, "testdata/ranks.v2.hex"))
	require.NoError(t, err)
	assert.Equal(t, ranks, gotRanks)

	goldenfile.Bytes(t, "testdata/mark.v2.hex", EncodeMark(9, 1000, 2500))
	mark, err := DecodeMark(goldenfile.Read(t, "testdata/mark.v2.hex"), 2500)
	require.NoError(t, err)
	assert.Equal(t, 1000, mark)

	bits := make(numberset.Bits, ChunkSplits/64)
	bits[0], bits[1] = 0x8000_0000_0000_0005, 1
	parts := []Part{
		{1, numberset.Runs{{From: 0, To: 3}, {From: 5, To: 300}}}, {99, numberset.Runs{{From: 1 << 14, To: 1 << 20}}},
	}
	goldenfile.Bytes(t, "testdata/chunk.v2.hex", EncodeChunk(9, bits, 0, 100, parts))
	gotBits, gotParts, err := DecodeChunk(goldenfile.Read(t, "testdata/chunk.v2.hex"), 100)
	require.NoError(t, err)
	assert.Equal(t, bits, gotBits)
	assert.Equal(t, parts, gotParts)

	assert.Equal(t, "ranks", Record{Kind: RanksRecord}.Key())
	assert.Equal(t, "e3/mark", Record{Kind: MarkRecord, Epoch: 3}.Key())
	assert.Equal(t, "e3/c00000a", Record{Kind: ChunkRecord, Epoch: 3, Chunk: 10}.Key())
}
