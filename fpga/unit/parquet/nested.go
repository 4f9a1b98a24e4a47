package parquet

import "fmt"

// nestedLevels holds levels of lists in a map, a byte each. Those from pos to end are not used yet.
type nestedLevels struct {
	rep, def [levelBatchSize]byte
	pos, end int
}

// levels reads len(dst) levels.
func (r *runs) levels(dst []byte) error {
	for len(dst) > 0 {
		if err := r.run(); err != nil {
			return err
		}
		k := min(len(dst), r.left)
		if r.isPacked {
			if err := r.packedLevels(dst[:k]); err != nil {
				return err
			}
		} else {
			fillBytes(dst[:k], byte(r.value))
			r.take(k)
		}
		dst = dst[k:]
	}
	return nil
}

// countNested counts the rows that begin in a page of lists in a map.
func (d *Decoder) countNested(n int) error {
	rest, l := d.rep, &d.nested // rest is a copy
	d.rows = 0
	for at := 0; at < n; {
		k := min(n-at, levelBatchSize)
		if err := rest.levels(l.rep[:k]); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
		if at == 0 {
			d.inRow = l.rep[0] > 0
		}
		for _, rep := range l.rep[:k] {
			if rep == 0 {
				d.rows++
			}
		}
		at += k
	}
	return nil
}

// fillNested reads the next batch of levels; false at the page's end.
func (d *Decoder) fillNested() (bool, error) {
	l := &d.nested
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
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
}

// nextNested appends n rows of lists in a map, or with n = 0 what belongs to the block's last row.
func (d *Decoder) nextNested(b *Block, n int) error {
	l := &d.nested
	for {
		more, err := d.fillNested()
		if err != nil {
			return err
		}
		if !more {
			if n > 0 {
				return corrupt("page ends before its rows do")
			}
			return nil
		}
		from := l.pos
		if n, err = d.entries(b, n); err != nil {
			return err
		}
		if err := d.elements(b, l.def[from:l.pos]); err != nil {
			return err
		}
		if l.pos < l.end {
			return nil // the next row begins here
		}
	}
}

// entries takes levels up to the end of n rows, or of the batch, and returns how many rows have not begun.
func (d *Decoder) entries(b *Block, n int) (int, error) {
	l := &d.nested
	entry, element := d.ct.EntryDef, d.ct.RepDef
	most := b.maxValues()
	for ; l.pos < l.end; l.pos++ {
		rep, def := l.rep[l.pos], l.def[l.pos]
		one := int32(0)
		if def >= element {
			one = 1
		}
		if rep < 2 && len(b.Inner) >= most && def >= entry {
			return 0, fmt.Errorf("%w: more than %d lists", ErrLimit, most)
		}
		switch {
		case rep == 2:
			last := len(b.Inner) - 1
			if last < 0 || one == 0 || b.Inner[last] == 0 || b.Lengths[len(b.Lengths)-1] == 0 {
				return 0, corrupt("an empty or null list goes on")
			}
			b.Inner[last]++
		case rep == 1:
			if def < entry || b.Lengths[len(b.Lengths)-1] == 0 {
				return 0, corrupt("an empty or null map goes on")
			}
			b.Lengths[len(b.Lengths)-1]++
			b.Inner = append(b.Inner, one)
		case n == 0:
			return 0, nil
		case def < entry:
			b.Lengths = append(b.Lengths, 0)
			n--
		default:
			b.Lengths = append(b.Lengths, 1)
			b.Inner = append(b.Inner, one)
			n--
		}
	}
	return n, nil
}

// elements decodes the values that levels tell of.
func (d *Decoder) elements(b *Block, def []byte) error {
	slots, there := 0, 0
	element, top := d.ct.RepDef, d.ct.MaxDef
	for _, l := range def {
		if l >= element {
			slots++
		}
		if l == top {
			there++
		}
	}
	if err := b.room(slots); err != nil {
		return err
	}
	if d.ct.NullableValues() {
		at := len(b.Valid)
		b.Valid = extend(b.Valid, slots)
		valid := b.Valid[at:]
		if there == slots {
			fillBytes(valid, 1)
		} else {
			k := 0
			for _, l := range def {
				if l >= element {
					valid[k] = 0
					if l == top {
						valid[k] = 1
					}
					k++
				}
			}
		}
		if err := d.vals.append(b, there); err != nil {
			return err
		}
		if there < slots {
			b.spread(valid, there)
			b.Nulls += slots - there
		}
		return nil
	}
	return d.vals.append(b, there)
}

// skipNested moves past the rest of the row before the page and n rows.
func (d *Decoder) skipNested(n int) error {
	l := &d.nested
	for {
		more, err := d.fillNested()
		if err != nil {
			return err
		}
		if !more {
			if n > 0 {
				return corrupt("page ends before its rows do")
			}
			return nil
		}
		there := 0
		for ; l.pos < l.end; l.pos++ {
			if l.rep[l.pos] == 0 {
				if n == 0 {
					break
				}
				n--
			}
			if l.def[l.pos] == d.ct.MaxDef {
				there++
			}
		}
		if err := d.vals.skip(there); err != nil {
			return err
		}
		if l.pos < l.end {
			return nil
		}
	}
}
