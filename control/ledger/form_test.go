package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfRecords compares the journal's three records and their keys with stored ones, and reads them.
func TestFormOfRecords(t *testing.T) {
	ranks := []rankEntry{{fence: 1 << 40, seq: 2, epoch: 3, edges: firstEdge | lastEdge}, {fence: 5, seq: 6, epoch: 7}}
	goldenfile.Bytes(t, "testdata/ranks.v1.hex", encodeRanks(9, ranks))
	gotRanks, err := decodeRanks(goldenfile.Read(t, "testdata/ranks.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, ranks, gotRanks)

	goldenfile.Bytes(t, "testdata/mark.v1.hex", encodeMark(9, 1000, 2500))
	mark, err := decodeMark(goldenfile.Read(t, "testdata/mark.v1.hex"), 2500)
	require.NoError(t, err)
	assert.Equal(t, 1000, mark)

	bits := make(bitset, ChunkSplits/64)
	bits[0], bits[1] = 0x8000_0000_0000_0005, 1
	goldenfile.Bytes(t, "testdata/chunk.v1.hex", encodeChunk(9, bits, 0, 100))
	gotBits, err := decodeChunk(goldenfile.Read(t, "testdata/chunk.v1.hex"), 100)
	require.NoError(t, err)
	assert.Equal(t, bits, gotBits)

	assert.Equal(t, "ranks", Record{Kind: RanksRecord}.Key())
	assert.Equal(t, "e3/mark", Record{Kind: MarkRecord, Epoch: 3}.Key())
	assert.Equal(t, "e3/c00000a", Record{Kind: ChunkRecord, Epoch: 3, Chunk: 10}.Key())
}
