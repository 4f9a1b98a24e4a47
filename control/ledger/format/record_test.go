package format

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestBytesThatAreNoRecord reads bytes that no Encode function returns.
func TestBytesThatAreNoRecord(t *testing.T) {
	bits := numberset.NewBits(ChunkSplits)
	bits.Fill(0, 1000)
	whole := EncodeChunk(1, bits, 0, 1000, nil)
	_, _, err := DecodeChunk(whole, 1000)
	require.NoError(t, err)
	unfinished := func(parts ...Part) []byte { return EncodeChunk(1, numberset.NewBits(ChunkSplits), 0, 1000, parts) }
	runs := func(numbers ...uint64) (s numberset.Runs) {
		for i := 0; i < len(numbers); i += 2 {
			s = append(s, dataset.Range{From: numbers[i], To: numbers[i+1]})
		}
		return s
	}
	one := unfinished(Part{3, runs(0, 1)})
	_, _, err = DecodeChunk(one, 1000)
	require.NoError(t, err)
	changed := bytes.Clone(whole)
	changed[100] ^= 1
	short := EncodeChunk(1, bits, 0, 996, nil) // The last byte of its bitmap has four bits of splits.
	above := bytes.Clone(short[HeaderBytes:])
	above[len(above)-1] = 0xff
	const notTheirs = "bytes do not describe its unfinished splits"
	for name, c := range map[string]struct {
		data   []byte
		splits int
		want   string
	}{
		"a cut header":                          {whole[:15], 1000, "the header alone has 16"},
		"a cut body":                            {whole[:100], 1000, "changed or cut"},
		"a changed bit":                         {changed, 1000, "changed or cut"},
		"another kind":                          {EncodeMark(1, 0, 1000), 1000, "mark under the key of a chunk"},
		"another size":                          {whole, 1024, "chunk of 1000 splits, the plan has 1024 there"},
		"bits above the last":                   {seal(ChunkRecord, 996, 1, above), 996, "has bits above them"},
		"an unfinished split that is delivered": {EncodeChunk(1, bits, 0, 1000, []Part{{3, runs(0, 1)}}), 1000, notTheirs},
		"unfinished splits that do not ascend":  {unfinished(Part{3, runs(0, 1)}, Part{3, runs(0, 1)}), 1000, notTheirs},
		"an unfinished split beyond the chunk":  {unfinished(Part{1000, runs(0, 1)}), 1000, notTheirs},
		"an unfinished split without runs":      {unfinished(Part{3, nil}), 1000, notTheirs},
		"runs that touch":                       {unfinished(Part{3, runs(0, 1, 1, 2)}), 1000, notTheirs},
		"runs that descend":                     {unfinished(Part{3, runs(1, 2, 0, 1)}), 1000, notTheirs},
		"an empty run":                          {unfinished(Part{3, runs(1, 1)}), 1000, notTheirs},
		"a cut run":                             {seal(ChunkRecord, 1000, 1, one[HeaderBytes:len(one)-1]), 1000, notTheirs},
		"a number in more bytes than it needs": {seal(ChunkRecord, 1000, 1,
			append(bytes.Clone(one[HeaderBytes:len(one)-1]), 0x81, 0)), 1000, notTheirs},
		"a later version": {later(whole), 1000, "version 3, this build reads 2"},
	} {
		_, _, err := DecodeChunk(c.data, c.splits)
		require.ErrorIs(t, err, ErrRecord, name)
		assert.ErrorContains(t, err, c.want, name)
	}
	_, err = DecodeMark(seal(MarkRecord, 2, 1, make([]byte, 2*markBytes)), 0)
	assert.ErrorContains(t, err, "2 marks")
	for _, b := range [][]byte{
		seal(RanksRecord, 2, 1, make([]byte, rankBytes)), seal(RanksRecord, 1, 1, make([]byte, rankBytes+1)),
	} {
		_, err = DecodeRanks(b)
		assert.ErrorContains(t, err, "bytes, want")
	}
}

// later returns a record of a version that this build does not know.
func later(b []byte) []byte {
	b = bytes.Clone(b)
	b[0] = RecordVersion + 1
	binary.LittleEndian.PutUint32(b[12:], checksum(b))
	return b
}

// TestPartsHaveAsManyNumbersAsASplitHasFragments reads a chunk whose split has numbers up to the limit, and beyond.
func TestPartsHaveAsManyNumbersAsASplitHasFragments(t *testing.T) {
	for _, run := range []dataset.Range{
		{From: 0, To: dataset.MaxSplitFragments}, {From: dataset.MaxSplitFragments - 1, To: dataset.MaxSplitFragments},
	} {
		parts := []Part{{0, numberset.Runs{run}}}
		_, got, err := DecodeChunk(EncodeChunk(1, numberset.NewBits(ChunkSplits), 0, 1, parts), 1)
		require.NoError(t, err)
		assert.Equal(t, parts, got)
		for _, beyond := range []dataset.Range{{From: run.From, To: run.To + 1}, {From: run.To, To: run.To + 1}} {
			parts := []Part{{0, numberset.Runs{beyond}}}
			_, _, err = DecodeChunk(EncodeChunk(1, numberset.NewBits(ChunkSplits), 0, 1, parts), 1)
			require.ErrorIs(t, err, ErrRecord, "%v", beyond)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, r := range []Record{
		{Job: "x", Kind: RanksRecord}, {Job: "x", Kind: MarkRecord, Epoch: 12}, {Job: "x", Kind: ChunkRecord, Epoch: 3,
			Chunk: 0xabcdef}, {Job: "x", Kind: ChunkRecord, Chunk: 0x1fffff},
	} {
		got, err := RecordOf("x", r.Key(), nil)
		require.NoError(t, err)
		assert.Equal(t, r, got)
	}
	for _, key := range []string{"", "rank", "e/mark", "e1", "e1/", "e01/mark", "e1/c1", "e1/c00000g", "e1/c-00001",
		"e-1/mark", "e1/c100000000", "e1/mark/"} {
		_, err := RecordOf("x", key, nil)
		assert.ErrorIs(t, err, ErrRecord, key)
	}
}
