package format_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// list returns the header of a Thrift list of structures.
func list(n int) []byte { return binary.AppendUvarint([]byte{0xfc}, uint64(n)) }

// footerOf returns a file that is a footer: a schema whose root has leaves, as the bytes of their elements, and one row
// group of chunks.
func footerOf(leaves, chunks int, leaf, chunk []byte) []byte {
	b := []byte("PAR1")
	b = append(b, 0x15, 2, 0x19) // version 1; the schema
	b = append(b, list(leaves+1)...)
	b = append(b, 0x48, 0, 0x15) // the root: a name, its children
	b = append(binary.AppendUvarint(b, uint64(2*leaves)), 0)
	b = append(b, bytes.Repeat(leaf, leaves)...)
	b = append(b, 0x16, 0, 0x19, 0x1c, 0x19) // no rows; one row group with columns
	b = append(b, list(chunks)...)
	b = append(b, bytes.Repeat(chunk, chunks)...)
	b = append(b, 0x26, 0, 0, 0) // no rows; the ends of the row group and of the footer
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)-4))
	return append(b, "PAR1"...)
}

// The least bytes of a leaf, of a chunk that says what it must, and of a chunk that is refused.
var (
	leastLeaf    = []byte{0x15, 2, 0x38, 0, 0}
	leastChunk   = []byte{0x3c, 0x15, 2, 0x19, 0x05, 0x25, 0, 0x16, 0, 0x16, 0, 0x16, 0, 0x26, 8, 0, 0}
	refusedChunk = []byte{0x18, 1, 'x', 0}
)

// TestMemoryOfFooters reads footers that have as many structures as fit into their bytes, and compares what that
// allocates with the bound of the package's documentation.
func TestMemoryOfFooters(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want error
		most int // bytes that are allocated
	}{
		"leaves": {footerOf(50_000, 50_000, leastLeaf, leastChunk), nil,
			50_000 * (1<<10 + 16*len(leastChunk))},
		"chunks": {footerOf(1, 200_000, leastLeaf, leastChunk), format.ErrCorrupt,
			200_000 * 16 * len(leastChunk)},
		"refused chunks": {footerOf(1, 200_000, leastLeaf, refusedChunk), format.ErrCorrupt,
			200_000 * 2 * len(refusedChunk)},
		"more leaves than are read": {footerOf(1<<20, 0, leastLeaf, nil), format.ErrLimit,
			(1 << 20) * 2 * len(leastLeaf)},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := format.ReadFooter(bytes.NewReader(c.file), int64(len(c.file)))
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes allocate %d", len(c.file), allocated)
			assert.Less(t, allocated, uint64(c.most))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
			}
		})
	}
}
