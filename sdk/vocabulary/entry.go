package vocabulary

import (
	"cmp"
	"encoding/binary"
	"math"
	"strconv"
)

// entry is what is known of a key: where it appeared first, and how often it appeared.
type entry struct {
	key      int64
	position uint64 // see positions
	count    uint64
}

const entrySize = 24

func (e *entry) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.key))
	b = binary.LittleEndian.AppendUint64(b, e.position)
	return binary.LittleEndian.AppendUint64(b, e.count)
}

func entryOf(b []byte) entry {
	return entry{key: int64(binary.LittleEndian.Uint64(b)), position: binary.LittleEndian.Uint64(b[8:]),
		count: binary.LittleEndian.Uint64(b[16:])}
}

// fold adds what is known of the same key elsewhere: the least position, and the sum of counts, which stays at its
// greatest value instead of overflowing.
func (e *entry) fold(o entry) {
	e.position = min(e.position, o.position)
	if e.count += o.count; e.count < o.count {
		e.count = math.MaxUint64
	}
}

func byKey(a, b entry) int { return cmp.Compare(a.key, b.key) }

// compareEntries returns the order of ids. No two keys are equal in it.
func (o Order) compareEntries() func(a, b entry) int {
	switch o {
	case ByCount:
		return func(a, b entry) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
		}
	case ByCountText:
		return func(a, b entry) int {
			return cmp.Or(cmp.Compare(b.count, a.count), compareDecimals(b.key, a.key))
		}
	}
	return func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.key, b.key))
	}
}

// compareDecimals compares the decimal texts of two keys byte by byte.
func compareDecimals(a, b int64) int {
	var x, y [20]byte
	return cmp.Compare(string(strconv.AppendInt(x[:0], a, 10)), string(strconv.AppendInt(y[:0], b, 10)))
}

// Bits of a position: the row in the data set, and below it the value's place in the row.
const (
	placeBits = 24
	// MaxRows bounds the rows of a data set that a vocabulary is made of, over all generations.
	MaxRows = 1 << (64 - placeBits)
)
