package parquet

import (
	"bytes"
	"fmt"
)

// levelBatchSize is how many levels of a list are unpacked at a time.
const levelBatchSize = 1024

// levelBatch holds unpacked levels of a list: those from pos to end are not used yet.
type levelBatch struct {
	rep, def [levelBatchSize]byte
	pos, end int
	full     bool // every definition level of the batch is the greatest: no nulls and no empty lists
}

func (l *levelBatch) reset() { l.pos, l.end = 0, 0 }

// fillLevels unpacks the next batch; false at the page's end.
func (d *Decoder) fillLevels() (bool, error) {
	l := &d.list
	if l.pos < l.end {
		return true, nil
	}
	n := min(d.levels, levelBatchSize)
	if n == 0 {
		return false, nil
	}
	if err := d.rep.levels(l.rep[:n]); err != nil {
		return false, fmt.Errorf("repetition levels: %w", err)
	}
	if err := d.def.levels(l.def[:n]); err != nil {
		return false, fmt.Errorf("definition levels: %w", err)
	}
	l.full = allAre(l.def[:n], d.ct.MaxDef)
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
}

// nextList appends n rows, or with n = 0 the values up to the next row's beginning, which belong to the block's last
// row.
func (d *Decoder) nextList(b *Block, n int) error {
	for {
		more, err := d.fillLevels()
		if err != nil {
			return err
		}
		if !more {
			if n > 0 {
				return corrupt("page ends before its rows do")
			}
			return nil
		}
		// Row by row over the batch: rep[i] begins a row if it is 0, and the ones after it are that row's.
		l := &d.list
		rep, def := l.rep[l.pos:l.end], l.def[l.pos:l.end]
		i, slots, there, done := 0, 0, 0, false
		at := len(b.Valid)
		var valid []byte // a byte for every slot of this batch; levels of empty lists have none
		if d.ct.NullableValues() {
			b.Valid = extend(b.Valid, len(rep))
			valid = b.Valid[at:]
		}
		for i < len(rep) {
			begins := rep[i] == 0
			if begins && n == 0 {
				done = true
				break
			}
			j := len(rep)
			if k := bytes.IndexByte(rep[i+1:], 0); k >= 0 {
				j = i + 1 + k
			}
			if begins {
				n--
				if err := d.beginRow(b, def[i], j-i); err != nil {
					return err
				}
			}
			if !begins || def[i] >= d.ct.RepDef {
				v := def[i:j]
				if valid != nil {
					v = valid[slots : slots+j-i]
				}
				n, err := d.elements(b, v, def[i:j], begins)
				if err != nil {
					return err
				}
				slots += j - i
				there += n
			}
			i = j
		}
		l.pos += i
		if valid != nil {
			b.Valid = b.Valid[:at+slots]
		}
		if err := b.room(slots); err != nil {
			return err
		}
		if err := d.vals.append(b, there); err != nil {
			return err
		}
		if there < slots {
			b.spread(b.Valid[at:], there)
			b.Nulls += slots - there
		}
		if done {
			return nil
		}
	}
}

// beginRow opens a row whose first definition level is def and which has levels levels in this batch.
func (d *Decoder) beginRow(b *Block, def byte, levels int) error {
	b.Lengths = append(b.Lengths, 0)
	if d.ct.RepDef > 1 {
		present := byte(1)
		if def < d.ct.RepDef-1 {
			present = 0
			b.NullRows++
		}
		b.RowValid = append(b.RowValid, present)
	}
	if def < d.ct.RepDef && levels > 1 {
		return corrupt("an empty or null list has %d elements", levels)
	}
	return nil
}

// elements adds the elements with these definition levels to the last row, writes to valid which of them are not null
// (if elements can be null), and returns how many. begins tells that the first of them begins the row.
func (d *Decoder) elements(b *Block, valid, def []byte, begins bool) (there int, err error) {
	if !begins && b.Lengths[len(b.Lengths)-1] == 0 {
		return 0, corrupt("an empty or null list goes on")
	}
	if err := b.addLength(len(def)); err != nil {
		return 0, err
	}
	if d.list.full {
		if d.ct.NullableValues() {
			fillBytes(valid, 1)
		}
		return len(def), nil
	}
	// An element's level is RepDef where it is null and MaxDef where it is not; levels in between are of nullable
	// groups around it, and below RepDef there is no element. Level - RepDef wraps there, and its high bits tell.
	repDef, maxDef := d.ct.RepDef, d.ct.MaxDef
	var bad byte
	switch maxDef - repDef {
	case 0:
		for _, l := range def {
			bad |= l ^ maxDef
		}
		there = len(def)
	case 1:
		valid = valid[:len(def)]
		for i, l := range def {
			p := l - repDef
			valid[i] = p
			bad |= p & 0xfe
		}
		there = onesIn(valid)
	default:
		valid = valid[:len(def)]
		for i, l := range def {
			var p byte
			if l == maxDef {
				p = 1
			}
			valid[i] = p
			bad |= (l - repDef) & 0x80
		}
		there = onesIn(valid)
	}
	if bad != 0 {
		return 0, corrupt("an empty or null list inside a list")
	}
	return there, nil
}

// skipList moves past the rest of the row before the page and n rows.
func (d *Decoder) skipList(n int) error {
	for {
		more, err := d.fillLevels()
		if err != nil {
			return err
		}
		if !more {
			if n > 0 {
				return corrupt("page ends before its rows do")
			}
			return nil
		}
		l := &d.list
		there, i := 0, l.pos
		for ; i < l.end; i++ {
			if l.rep[i] == 0 {
				if n == 0 {
					break
				}
				n--
			}
			if l.def[i] == d.ct.MaxDef {
				there++
			}
		}
		done := i < l.end
		l.pos = i
		if err := d.vals.skip(there); err != nil {
			return err
		}
		if done {
			return nil
		}
	}
}
