package cs

import "fmt"

// The layouts of log pages 82h, 83h and 84h are in no public source. These are ours, a header of 64 bytes with the
// number of entries first, and provisional; log page C0h is the stable contract.

const listHeader = 64

// MaxPrograms is the most entries of a program list.
const MaxPrograms = 256

// MarshalPrograms writes log page 82h: for every slot a descriptor of ProgramSize bytes {occupancy, active and identity
// kind u8, type u8, 6 reserved, PUID u64, bytes u64, reserved}, in slot order.
func MarshalPrograms(list []Program) []byte {
	list = list[:min(len(list), MaxPrograms)]
	b := make([]byte, listHeader+len(list)*ProgramSize)
	put32(b, uint32(len(list)))
	for i := range list {
		list[i].marshal(b[listHeader+i*ProgramSize:])
	}
	return b
}

// UnmarshalPrograms reads log page 82h from b, which may have more bytes than the list.
func UnmarshalPrograms(b []byte) ([]Program, error) {
	n, b, err := listEntries("program list", b, MaxPrograms, ProgramSize)
	if err != nil {
		return nil, err
	}
	out := make([]Program, n)
	for i := range out {
		e := b[i*ProgramSize:]
		out[i] = Program{Occupancy: Occupancy(e[0] & 3), Active: e[0]>>2&1 != 0, Type: e[1], PUID: le64(e[8:]),
			Bytes: le64(e[16:])}
	}
	return out, nil
}

// listEntries checks a list's header against its bytes and returns the number of entries and where they begin.
func listEntries(what string, b []byte, most, size int) (int, []byte, error) {
	if len(b) < listHeader {
		return 0, nil, fmt.Errorf("%s: header: %w", what, ErrShort)
	}
	n := le32(b)
	if n > uint32(most) {
		return 0, nil, fmt.Errorf("%s: %d entries, at most %d", what, n, most)
	}
	if len(b)-listHeader < int(n)*size {
		return 0, nil, fmt.Errorf("%s: %d entries in %d bytes: %w", what, n, len(b)-listHeader, ErrShort)
	}
	return int(n), b[listHeader:], nil
}

// MarshalProgramTypes writes log page 83h: the types of program that can be loaded, each in 16 bytes {type u8, identity
// kind u8, 14 reserved}.
func MarshalProgramTypes(types []uint8) []byte {
	b := make([]byte, listHeader+len(types)*16)
	put32(b, uint32(len(types)))
	for i, t := range types {
		b[listHeader+16*i], b[listHeader+16*i+1] = t, IdentityPUID
	}
	return b
}

// MemoryRangeSet is an entry of log page 84h.
type MemoryRangeSet struct {
	ID     uint16
	Ranges []Range // at most MaxRanges
}

// MaxRangeSets is the most entries of a memory range set list.
const MaxRangeSets = 256

const rangeSetSize = 16 + MaxRanges*MemoryRangeSize

// MarshalRangeSets writes log page 84h, the memory range sets of the association that asks: each {identifier u16,
// ranges u16, 12 reserved} and MaxRanges descriptors of memory ranges.
func MarshalRangeSets(sets []MemoryRangeSet) []byte {
	sets = sets[:min(len(sets), MaxRangeSets)]
	b := make([]byte, listHeader, listHeader+len(sets)*rangeSetSize)
	put32(b, uint32(len(sets)))
	for _, s := range sets {
		var x [16]byte
		ranges := s.Ranges[:min(len(s.Ranges), MaxRanges)]
		put16(x[0:], s.ID)
		put16(x[2:], uint16(len(ranges)))
		b = append(b, x[:]...)
		for i := range MaxRanges {
			var r MemoryRange
			if i < len(ranges) {
				r = MemoryRange{NamespaceSLM, uint32(ranges[i].Len), ranges[i].Addr}
			}
			b = r.AppendTo(b)
		}
	}
	return b
}
