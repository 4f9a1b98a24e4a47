package block

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// Buffers are the block memory of one engine thread that operators write to. They grow to the size of the largest block
// so far. The zero value is ready.
type Buffers struct {
	Int64s   []int64
	Float32s []float32
	Float64s []float64
	Offsets  []uint32
	Data     []byte
	Valid    []byte
	Lengths  []int32
	// Grown is for lists that are longer than those they are made of. An operator writes them there, and then exchanges
	// the slice with the one above that has the same kind.
	Grown struct {
		Int64s   []int64
		Float32s []float32
		Float64s []float64
	}
	// Copied is for copies of a few integers that an operator reads while it writes where they lay.
	Copied []int64

	// Final is where the values of a chain end; the chain's last step may write them there.
	Final Destination
	// InputSum is the checksum of the open page, if the bytes of the values come next in it and the only step of a chain
	// may add them. Else it is nil.
	InputSum *RunningSum
	// Lookups are the lookup tables of the slice, by their number.
	Lookups []vocabulary.Stored

	current     Destination // The destination of the running step: Final for a chain's last step, else nothing.
	droppedRows []byte      // A byte a row, 1 for lists that hold a null.
}

// RunningSum is a checksum over the first bytes of a page.
type RunningSum struct {
	Sum    uint32
	Summed int // Summed is the number of these bytes.
}

// Destination is the memory in which a chain's values end, where the last operator can write them there directly. Nil
// fields mean that it cannot.
type Destination struct {
	IDs   []int64   // IDs is for ids without nulls.
	IDs32 []byte    // IDs32 is for such ids as int32, four bytes each.
	Dense []float32 // Dense is for values of dense.
}

// cutTo returns the destination cut to n values. Ids with nulls among them cannot be written directly, because nulls
// are left out.
func (d Destination) cutTo(n int, nulls bool) Destination {
	var c Destination
	if !nulls && len(d.IDs) >= n {
		c.IDs = d.IDs[:n]
	}
	if !nulls && len(d.IDs32) >= 4*n {
		c.IDs32 = d.IDs32[:4*n]
	}
	if len(d.Dense) >= n {
		c.Dense = d.Dense[:n]
	}
	return c
}

// RunLast runs a chain's last step, which may write to Final.
func (b *Buffers) RunLast(s Step, v *Values) error {
	b.current = b.Final.cutTo(v.Count, v.Valid != nil)
	err := s.Run(b, v)
	b.current = Destination{}
	return err
}

// Resize returns the first n elements of *buf, and allocates a larger buffer if *buf is too small. The elements are not
// cleared.
func Resize[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n+n/4)
	}
	return (*buf)[:n]
}

// IntDestination returns memory for n integers that a step makes from other memory: the place where the chain's values
// end if the step is its last, else a buffer.
func (b *Buffers) IntDestination(n int) []int64 {
	if b.current.IDs != nil {
		return b.current.IDs
	}
	return Resize(&b.Int64s, n)
}

// IDs32Destination returns memory for the ids of a block as int32, four bytes each, if the chain's values end there and
// the step is its last; else nil.
func (b *Buffers) IDs32Destination() []byte { return b.current.IDs32 }

// FloatDestination returns memory for n float32 values that a step makes from other memory: the place where the chain's
// values end if the step is its last, else a buffer.
func (b *Buffers) FloatDestination(n int) []float32 {
	if b.current.Dense != nil {
		return b.current.Dense
	}
	return Resize(&b.Float32s, n)
}

// OwnValues copies v's values to a buffer of the chain, unless they are there already, so that operators may change
// them in place.
func (b *Buffers) OwnValues(v *Values) {
	if v.OwnsValues {
		return
	}
	v.OwnsValues = true
	switch v.Kind {
	case program.Int64:
		dst := Resize(&b.Int64s, v.Count)
		copy(dst, v.Int64s)
		v.Int64s = dst
	case program.Float32:
		dst := Resize(&b.Float32s, v.Count)
		copy(dst, v.Float32s)
		v.Float32s = dst
	case program.Float64:
		dst := Resize(&b.Float64s, v.Count)
		copy(dst, v.Float64s)
		v.Float64s = dst
	case program.Bytes:
		if len(v.Offsets) == 0 { // no strings
			return
		}
		dst, first := Resize(&b.Offsets, len(v.Offsets)), v.Offsets[0]
		for i, at := range v.Offsets {
			dst[i] = at - first
		}
		b.Data = append(b.Data[:0], v.Data[first:v.Offsets[len(v.Offsets)-1]]...)
		v.Offsets, v.Data = dst, b.Data
	}
}

// OwnLengths copies v's lengths to a buffer of the chain, unless they are there already.
func (b *Buffers) OwnLengths(v *Values) {
	if !v.OwnsLengths {
		dst := Resize(&b.Lengths, len(v.Lengths))
		copy(dst, v.Lengths)
		v.Lengths, v.OwnsLengths = dst, true
	}
}

// Size returns the size of the buffers in bytes.
func (b *Buffers) Size() int {
	return 8*(cap(b.Int64s)+cap(b.Float64s)+cap(b.Grown.Int64s)+cap(b.Grown.Float64s)+cap(b.Copied)) +
		4*(cap(b.Float32s)+cap(b.Grown.Float32s)+cap(b.Offsets)+cap(b.Lengths)) + cap(b.Data) + cap(b.Valid) +
		cap(b.droppedRows)
}

// ReleaseLookups drops the references to the lookup tables.
func (b *Buffers) ReleaseLookups() {
	clear(b.Lookups)
	b.Lookups = b.Lookups[:0]
}
