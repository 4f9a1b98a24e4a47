package sdk

import "fmt"

// geometry turns a partition's bytes into moves of whole blocks. Planning happens in shifted offsets: the partition's
// offset plus the phase, the distance of its first byte from the start of its block. A shifted offset that is a
// multiple of the block lies on a block's boundary.
type geometry struct {
	block   uint64
	phase   uint64
	size    uint64   // of the partition
	extents []Extent // nil: moves name bytes of the partition
}

// geometry checks that the partition can be moved in blocks so that neighbouring bytes stay neighbours.
func (p *Partition) geometry(lim Limits) (geometry, error) {
	g := geometry{block: max(lim.Block, 1), size: uint64(p.Size)}
	if g.block&(g.block-1) != 0 {
		return g, fmt.Errorf("moves of %d bytes: want a power of two", g.block)
	}
	if !lim.Device {
		return g, nil
	}
	if p.Size > 0 && len(p.Extents) == 0 {
		return g, fmt.Errorf("%s: %w: it is not known where it lies on the drive; open it with Extents", p.Name, ErrPartition)
	}
	g.extents = p.Extents
	for i, e := range p.Extents {
		at := uint64(e.Device) % g.block
		if i == 0 {
			g.phase = at
			continue
		}
		if at != 0 || (uint64(e.Offset)+g.phase)%g.block != 0 {
			return g, fmt.Errorf("%s: %w: extent %d (offset %d at byte %d of the drive) does not begin on a block of %d bytes; copy the partition anew",
				p.Name, ErrPartition, i, e.Offset, e.Device, g.block)
		}
	}
	return g, nil
}

// cover returns the shifted offsets of the blocks that hold partition bytes [from, to).
func (g *geometry) cover(from, to uint64) (lo, hi uint64) {
	return (from + g.phase) &^ (g.block - 1), g.roundUp(to + g.phase)
}

func (g *geometry) roundUp(n uint64) uint64 { return (n + g.block - 1) &^ (g.block - 1) }

// moves appends the moves that bring shifted offsets [lo, hi) to address to. Moves that continue the one before them,
// on the drive and in memory, are joined with it.
func (g *geometry) moves(m []Move, lo, hi, to uint64) []Move {
	add := func(from, n, to uint64) {
		if k := len(m) - 1; k >= 0 && m[k].From+m[k].Len == from && m[k].To+m[k].Len == to {
			m[k].Len += n
			return
		}
		m = append(m, Move{From: from, Len: n, To: to})
	}
	if g.extents == nil {
		add(lo, hi-lo, to)
		return m
	}
	for i, e := range g.extents {
		begin, end := uint64(e.Offset)+g.phase, g.roundUp(uint64(e.Offset+e.Len)+g.phase)
		device := uint64(e.Device)
		if i == 0 {
			begin, device = 0, device-g.phase
		}
		from, until := max(lo, begin), min(hi, end)
		if from < until {
			add(device+from-begin, until-from, to+from-lo)
		}
	}
	return m
}
