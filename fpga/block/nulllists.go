package block

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
)

// EmptyNullLists gives length 0 to every list that holds a null. Afterwards v has no nulls.
func (b *Buffers) EmptyNullLists(v *Values) {
	b.FlagNullLists(v)
	b.OwnValues(v)
	b.RemoveFlaggedLists(v)
	v.Valid = nil
}

// FlagNullLists remembers which lists of v hold a null, until the next call.
func (b *Buffers) FlagNullLists(v *Values) {
	drop := Resize(&b.droppedRows, len(v.Lengths))
	at := 0
	for row, l := range v.Lengths {
		drop[row] = 0
		if bytes.IndexByte(v.Valid[at:at+int(l)], 0) >= 0 {
			drop[row] = 1
		}
		at += int(l)
	}
	b.droppedRows = drop
}

// NullFlaggedLists marks all values of the flagged lists as null in valid.
func (b *Buffers) NullFlaggedLists(v *Values, valid []byte) {
	at := 0
	for row, l := range v.Lengths {
		if b.droppedRows[row] != 0 {
			clear(valid[at : at+int(l)])
		}
		at += int(l)
	}
}

// RemoveFlaggedLists takes the values of the flagged lists out of v. The chain must own v's values, and v's validity if
// it is kept.
func (b *Buffers) RemoveFlaggedLists(v *Values) {
	b.OwnLengths(v)
	from, to := 0, 0
	for row, l := range v.Lengths {
		n := int(l)
		if b.droppedRows[row] != 0 {
			v.Lengths[row] = 0
			from += n
			continue
		}
		if from != to {
			switch v.Kind {
			case program.Int64:
				copy(v.Int64s[to:to+n], v.Int64s[from:from+n])
			case program.Float32:
				copy(v.Float32s[to:to+n], v.Float32s[from:from+n])
			case program.Float64:
				copy(v.Float64s[to:to+n], v.Float64s[from:from+n])
			case program.Bytes:
				moveTexts(v, to, from, n)
			}
			if v.OwnsValid {
				copy(v.Valid[to:to+n], v.Valid[from:from+n])
			}
		}
		from, to = from+n, to+n
	}
	v.Count = to
	switch v.Kind {
	case program.Int64:
		v.Int64s = v.Int64s[:to]
	case program.Float32:
		v.Float32s = v.Float32s[:to]
	case program.Float64:
		v.Float64s = v.Float64s[:to]
	case program.Bytes:
		v.Offsets, v.Data = v.Offsets[:to+1], v.Data[:v.Offsets[to]]
	}
	if v.OwnsValid {
		v.Valid = v.Valid[:to]
	}
}

// moveTexts moves n strings of bytes from index from to the lower index to, and their bytes behind those of the strings
// before.
func moveTexts(v *Values, to, from, n int) {
	first, last := v.Offsets[from], v.Offsets[from+n]
	begin := v.Offsets[to]
	copy(v.Data[begin:], v.Data[first:last])
	for i := range n {
		v.Offsets[to+i+1] = begin + v.Offsets[from+i+1] - first
	}
}

// ValidOutsideNullLists returns the validity of v's strings, in which all strings of a list that holds a null are null,
// so that no string of such a list can fail: the list becomes empty. v's validity comes from the decoder.
func (b *Buffers) ValidOutsideNullLists(v *Values) []byte {
	if !v.List || v.Valid == nil {
		return v.Valid
	}
	valid := Resize(&b.Valid, v.Count)
	copy(valid, v.Valid)
	b.FlagNullLists(v)
	b.NullFlaggedLists(v, valid)
	return valid
}

// EndBytes notes that a step has made numbers of v's strings in memory of the chain. A list that held a null becomes
// empty.
func (b *Buffers) EndBytes(kind program.Kind, v *Values) {
	v.Kind, v.OwnsValues, v.Offsets, v.Data = kind, true, nil, nil
	if v.List && v.Valid != nil {
		b.EmptyNullLists(v)
	}
}

// ReadTexts makes integers of v's strings, which come straight from the decoder. read sets dst to them, and the byte of
// valid to 0 where a string becomes a null. A list that held a null before becomes empty, and its strings are not read.
// An error of read that is a [ValueError] becomes a [RowError].
func (b *Buffers) ReadTexts(v *Values, read func(dst []int64, offsets []uint32, data, valid []byte) error) error {
	drop := v.List && v.Valid != nil
	if drop {
		b.FlagNullLists(v)
	}
	b.OwnValidity(v)
	if drop {
		b.NullFlaggedLists(v, v.Valid)
	}
	dst := Resize(&b.Int64s, v.Count)
	if v.Count > 0 {
		if err := read(dst, v.Offsets, v.Data, v.Valid); err != nil {
			return v.rowError(err)
		}
	}
	v.Kind, v.Int64s, v.OwnsValues, v.Offsets, v.Data = program.Int64, dst, true, nil, nil
	if drop {
		b.RemoveFlaggedLists(v)
	}
	b.DropFullValidity(v)
	return nil
}

// OwnValidity gives v a validity in memory of the chain, in which operators may make nulls.
func (b *Buffers) OwnValidity(v *Values) {
	if v.OwnsValid && v.Valid != nil {
		return
	}
	valid := Resize(&b.Valid, v.Count)
	if v.Valid == nil {
		for i := range valid {
			valid[i] = 1
		}
	} else {
		copy(valid, v.Valid)
	}
	v.Valid, v.OwnsValid = valid, true
}

// DropFullValidity sets the validity of values without a null to nil.
func (b *Buffers) DropFullValidity(v *Values) {
	if bytes.IndexByte(v.Valid, 0) < 0 {
		v.Valid = nil
	}
}
