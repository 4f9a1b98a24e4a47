package engine

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
)

// emptyNullLists gives length 0 to every list that holds a null. Afterwards v has no nulls.
func (b *buffers) emptyNullLists(v *chainValues) {
	b.flagNullLists(v)
	b.ownValues(v)
	b.removeFlaggedLists(v)
	v.valid = nil
}

// flagNullLists sets droppedRows: a byte a row, 1 where a value of the row is null.
func (b *buffers) flagNullLists(v *chainValues) {
	drop := resize(&b.droppedRows, len(v.lengths))
	at := 0
	for row, l := range v.lengths {
		drop[row] = 0
		if bytes.IndexByte(v.valid[at:at+int(l)], 0) >= 0 {
			drop[row] = 1
		}
		at += int(l)
	}
	b.droppedRows = drop
}

// nullFlaggedLists marks all values of the flagged rows as null.
func (b *buffers) nullFlaggedLists(v *chainValues, valid []byte) {
	at := 0
	for row, l := range v.lengths {
		if b.droppedRows[row] != 0 {
			clear(valid[at : at+int(l)])
		}
		at += int(l)
	}
}

// removeFlaggedLists takes the values of the flagged rows out of v. The chain must own v's values, and v's validity if
// it is kept.
func (b *buffers) removeFlaggedLists(v *chainValues) {
	b.ownLengths(v)
	from, to := 0, 0
	for row, l := range v.lengths {
		n := int(l)
		if b.droppedRows[row] != 0 {
			v.lengths[row] = 0
			from += n
			continue
		}
		if from != to {
			switch v.kind {
			case program.Int64:
				copy(v.int64s[to:to+n], v.int64s[from:from+n])
			case program.Float32:
				copy(v.float32s[to:to+n], v.float32s[from:from+n])
			case program.Float64:
				copy(v.float64s[to:to+n], v.float64s[from:from+n])
			}
			if v.ownsValid {
				copy(v.valid[to:to+n], v.valid[from:from+n])
			}
		}
		from, to = from+n, to+n
	}
	v.count = to
	switch v.kind {
	case program.Int64:
		v.int64s = v.int64s[:to]
	case program.Float32:
		v.float32s = v.float32s[:to]
	case program.Float64:
		v.float64s = v.float64s[:to]
	}
	if v.ownsValid {
		v.valid = v.valid[:to]
	}
}
