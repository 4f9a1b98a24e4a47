package engine

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// gatheredBytes holds the values of a feature of a map to bytes, one behind the other.
type gatheredBytes struct {
	offsets []uint32
	data    []byte
}

// BufferBytes returns the size of the buffers.
func (g *gatheredBytes) bufferBytes() int { return 4*cap(g.offsets) + cap(g.data) }

// begin empties g, with room for n values.
func (g *gatheredBytes) begin(n int) {
	g.offsets, g.data = append(block.Resize(&g.offsets, n+1)[:0], 0), g.data[:0]
}

// add adds values from to to, exclusive, of a block.
func (g *gatheredBytes) add(b *decoder.Block, from, to int) {
	if from == to {
		return
	}
	first := b.Offsets[from]
	moved := uint32(len(g.data)) - first // wraps around
	g.data = append(g.data, b.Data[first:b.Offsets[to]]...)
	for _, end := range b.Offsets[from+1 : to+1] {
		g.offsets = append(g.offsets, end+moved)
	}
}

// gatherEntries sets v to the values of the entries that are valid, and to no bytes for others. An entry is the number
// of a value plus 1, or 0 for none.
func (g *gatheredBytes) gatherEntries(b *decoder.Block, entries []uint32, valid []byte, v *block.Values) {
	g.begin(len(entries))
	for r, e := range entries {
		if valid[r] != 0 {
			g.add(b, int(e)-1, int(e))
		} else {
			g.offsets = append(g.offsets, uint32(len(g.data)))
		}
	}
	v.Offsets, v.Data = g.offsets, g.data
}

// gatherLists sets v to the lists of the entries, one behind the other; they have v.count values together.
func (g *gatheredBytes) gatherLists(b *decoder.Block, entries, starts []uint32, v *block.Values) {
	g.begin(v.Count)
	for _, e := range entries {
		if e != 0 {
			g.add(b, int(starts[e-1]), int(starts[e]))
		}
	}
	v.Offsets, v.Data = g.offsets, g.data
}
