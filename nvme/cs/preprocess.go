package cs

import (
	"errors"
	"fmt"
)

// ErrRanges says that a descriptor names more than MaxRanges memory ranges.
var ErrRanges = errors.New("too many memory ranges")

// Preprocess is the data of the vendor command of that name: copies from namespaces into subsystem local memory, in
// order, then one execution of the active program over Ranges with Args.
//
// On the wire, little endian: a 16-byte header {version u16 = 1, ranges u16, copies u32, argument bytes u32, reserved
// u32 = 0}, the ranges {address u64, length u64}, the copies {namespace u32, blocks u32, first LBA u64, destination
// u64, reserved u64 = 0}, and the arguments. Nothing follows.
type Preprocess struct {
	Ranges []Range // at most MaxRanges
	Copies []Copy
	Args   []byte // opaque
}

// Sizes of the parts of a Preprocess in bytes.
const (
	PreprocessVersion = 1
	PreprocessHeader  = 16
	rangeSize         = 16
	copySize          = 32
)

// AppendTo appends the marshalled descriptor to b. It fails with ErrRanges on more than MaxRanges ranges.
func (p *Preprocess) AppendTo(b []byte) ([]byte, error) {
	if len(p.Ranges) > MaxRanges {
		return b, fmt.Errorf("preprocess: %w: %d, at most %d", ErrRanges, len(p.Ranges), MaxRanges)
	}
	start := len(b)
	b = append(b, make([]byte, PreprocessHeader+len(p.Ranges)*rangeSize+len(p.Copies)*copySize)...)
	x := b[start:]
	put16(x[0:], PreprocessVersion)
	put16(x[2:], uint16(len(p.Ranges)))
	put32(x[4:], uint32(len(p.Copies)))
	put32(x[8:], uint32(len(p.Args)))
	x = x[PreprocessHeader:]
	for _, r := range p.Ranges {
		put64(x[0:], r.Addr)
		put64(x[8:], r.Len)
		x = x[rangeSize:]
	}
	for _, c := range p.Copies {
		put32(x[0:], c.NSID)
		put32(x[4:], c.NLB)
		put64(x[8:], c.SLBA)
		put64(x[16:], c.Dest)
		x = x[copySize:]
	}
	return append(b, p.Args...), nil
}

// Marshal returns the marshalled descriptor.
func (p *Preprocess) Marshal() ([]byte, error) { return p.AppendTo(nil) }

// Unmarshal reads a descriptor that is exactly b. Args then refers into b; Ranges and Copies reuse what p held.
func (p *Preprocess) Unmarshal(b []byte) error {
	if len(b) < PreprocessHeader {
		return fmt.Errorf("preprocess: header: %w", ErrShort)
	}
	if v := le16(b); v != PreprocessVersion {
		return fmt.Errorf("preprocess: version %d, this is version %d", v, PreprocessVersion)
	}
	ranges, copies, args := uint64(le16(b[2:])), uint64(le32(b[4:])), uint64(le32(b[8:]))
	if ranges > MaxRanges {
		return fmt.Errorf("preprocess: %w: %d, at most %d", ErrRanges, ranges, MaxRanges)
	}
	if le32(b[12:]) != 0 {
		return fmt.Errorf("preprocess: reserved header bytes are not zero")
	}
	if want := PreprocessHeader + ranges*rangeSize + copies*copySize + args; want != uint64(len(b)) {
		return fmt.Errorf("preprocess: %d bytes where the header says %d", len(b), want)
	}
	b = b[PreprocessHeader:]
	p.Ranges, p.Copies = p.Ranges[:0], p.Copies[:0]
	for range ranges {
		p.Ranges = append(p.Ranges, Range{le64(b), le64(b[8:])})
		b = b[rangeSize:]
	}
	for range copies {
		if le64(b[24:]) != 0 {
			return fmt.Errorf("preprocess: reserved bytes of a copy are not zero")
		}
		p.Copies = append(p.Copies, Copy{NSID: le32(b), NLB: le32(b[4:]), SLBA: le64(b[8:]), Dest: le64(b[16:])})
		b = b[copySize:]
	}
	p.Args = b
	return nil
}
