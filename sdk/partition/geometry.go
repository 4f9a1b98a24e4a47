package partition

import "fmt"

// Extent is a run of a partition's bytes that lie together on a drive.
type Extent struct {
	Offset int64 // The offset in the partition.
	Device int64 // byte of namespace 1
	Len    int64
}

// checkExtents demands that extents cover the partition in order.
func checkExtents(extents []Extent, size int64) error {
	if len(extents) == 0 {
		return nil
	}
	at := int64(0)
	for i, e := range extents {
		if e.Offset != at || e.Len <= 0 || e.Device < 0 || e.Device > 1<<62 || e.Len > 1<<62 {
			return fmt.Errorf("extent %d (offset %d, %d bytes at byte %d of the drive) does not follow byte %d",
				i, e.Offset, e.Len, e.Device, at)
		}
		at += e.Len
	}
	if at < size {
		return fmt.Errorf("its extents hold %d of %d bytes", at, size)
	}
	return nil
}

// Geometry turns a partition's bytes into runs of whole blocks. A plan is made in aligned offsets: the partition's
// offset plus the phase, which is the distance of the partition's first byte from the start of its block. An aligned
// offset that is a multiple of the block lies on a block's boundary.
type Geometry struct {
	block   uint64
	phase   uint64
	extents []Extent // nil: runs name bytes of the partition
}

// Run is a run of bytes that a move can bring: of the partition, or of the drive where the geometry is a drive's.
type Run struct{ From, Len uint64 }

// Geometry returns how the partition's bytes are read in blocks of a power of two bytes; 0 means 1. With onDevice the
// blocks are those of the drive that the partition's extents lie on, and every extent but the first must begin on one,
// so that neighbouring bytes stay neighbours in memory.
func (p *Partition) Geometry(block uint64, onDevice bool) (Geometry, error) {
	g := Geometry{block: max(block, 1)}
	if g.block&(g.block-1) != 0 {
		return g, fmt.Errorf("moves of %d bytes: want a power of two", g.block)
	}
	if !onDevice {
		return g, nil
	}
	if p.Size > 0 && len(p.Extents) == 0 {
		return g, fmt.Errorf("%s: %w: it is not known where it lies on the drive; open it with Extents",
			p.Name, ErrUnreadable)
	}
	g.extents = p.Extents
	for i, e := range p.Extents {
		at := uint64(e.Device) % g.block
		if i == 0 {
			g.phase = at
			continue
		}
		if at != 0 || (uint64(e.Offset)+g.phase)%g.block != 0 {
			return g, fmt.Errorf(
				"%s: %w: extent %d (offset %d at byte %d of the drive) does not begin on a block of %d bytes; "+
					"copy the partition again",
				p.Name, ErrUnreadable, i, e.Offset, e.Device, g.block)
		}
	}
	return g, nil
}

// Block returns the bytes of a block.
func (g *Geometry) Block() uint64 { return g.block }

// Align returns the aligned offset of a byte of the partition.
func (g *Geometry) Align(offset uint64) uint64 { return offset + g.phase }

// Cover returns the aligned offsets [lo, hi) of the blocks that hold partition bytes [from, to).
func (g *Geometry) Cover(from, to uint64) (lo, hi uint64) {
	return (from + g.phase) &^ (g.block - 1), g.roundUp(to + g.phase)
}

func (g *Geometry) roundUp(n uint64) uint64 { return (n + g.block - 1) &^ (g.block - 1) }

// AppendRuns appends the runs that hold aligned offsets [lo, hi), in order and without holes.
func (g *Geometry) AppendRuns(runs []Run, lo, hi uint64) []Run {
	if g.extents == nil {
		return append(runs, Run{From: lo, Len: hi - lo})
	}
	for i, e := range g.extents {
		begin, end := uint64(e.Offset)+g.phase, g.roundUp(uint64(e.Offset+e.Len)+g.phase)
		device := uint64(e.Device)
		if i == 0 {
			begin, device = 0, device-g.phase
		}
		if from, until := max(lo, begin), min(hi, end); from < until {
			runs = append(runs, Run{From: device + from - begin, Len: until - from})
		}
	}
	return runs
}
