package tensor

// Gather mixes the rows of a window of mini-batches. Rows are counted through all mini-batches of a window: row i of
// the returned window is row permutation[i] of the given one. Mini-batch k of the returned window has the name, the
// place and the number of rows of mini-batch k of the given one, and memory of its own. permutation must permute the
// window's rows (see dataset.RowPermutation); all mini-batches must be valid and of one schema. The error wraps
// ErrShape.
func Gather(window []*MiniBatch, permutation []uint32) ([]*MiniBatch, error) {
	if len(window) == 0 {
		if len(permutation) != 0 {
			return nil, shapeError("%d rows to gather from no mini-batch", len(permutation))
		}
		return nil, nil
	}
	s := window[0].Schema
	total := 0
	for i, m := range window {
		if m.Unique != nil {
			return nil, shapeError("mini-batch %d of the window is deduplicated: gather first", i)
		}
		if !m.Schema.Equal(s) {
			return nil, shapeError("mini-batch %d of the window has another schema", i)
		}
		if err := m.Validate(); err != nil {
			return nil, err
		}
		total += m.Rows
	}
	if len(permutation) != total {
		return nil, shapeError("%d rows to gather from a window of %d", len(permutation), total)
	}
	seen := make([]bool, total)
	for i, p := range permutation {
		if int64(p) >= int64(total) || seen[p] {
			return nil, shapeError("row %d of the permutation is %d, out of range or there twice", i, p)
		}
		seen[p] = true
	}

	windowRows := make([]rowRef, 0, total)  // by the row's number in the window
	offsets := make([][]int64, len(window)) // of the lists
	for i, m := range window {
		for r := range m.Rows {
			windowRows = append(windowRows, rowRef{i, r})
		}
		if !s.Fixed() {
			offsets[i] = m.Offsets(make([]int64, 0, len(m.Lengths)+1))
		}
	}
	out := make([]*MiniBatch, len(window))
	first := 0 // row of the mini-batch in the window
	for k, m := range window {
		rows := make([]rowRef, m.Rows)
		for r := range rows {
			rows[r] = windowRows[permutation[first+r]]
		}
		first += m.Rows
		o, err := gatherOne(window, offsets, rows)
		if err != nil {
			return nil, err
		}
		o.Name, o.Fragment = m.Name, m.Fragment
		out[k] = o
	}
	return out, nil
}

// rowRef refers to a row of a window: the index of its mini-batch, and its row there.
type rowRef struct{ batch, row int }

// gatherOne makes a mini-batch of rows of the window. offsets are the offsets of each mini-batch's lists.
func gatherOne(window []*MiniBatch, offsets [][]int64, rows []rowRef) (*MiniBatch, error) {
	s := window[0].Schema
	f, fixed := len(s.Keys), s.Fixed()
	values := len(rows) * f
	if !fixed {
		values = 0
		for key := range f {
			for _, p := range rows {
				m := window[p.batch]
				values += int(m.Lengths[key*m.Rows+p.row])
			}
		}
	}
	o, err := Make(s, len(rows), values)
	if err != nil {
		return nil, err
	}
	if s.Label {
		for r, p := range rows {
			o.Label[r] = window[p.batch].Label[p.row]
		}
	}
	if d := len(s.Dense); d > 0 {
		for r, p := range rows {
			if m := window[p.batch]; o.Dense16 != nil {
				copy(o.Dense16[r*d:(r+1)*d], m.Dense16[p.row*d:(p.row+1)*d])
			} else {
				copy(o.Dense[r*d:(r+1)*d], m.Dense[p.row*d:(p.row+1)*d])
			}
		}
	}
	at := 0
	for key := range f {
		for r, p := range rows {
			m := window[p.batch]
			i := key*m.Rows + p.row
			lo, hi := i, i+1
			if !fixed {
				lo, hi = int(offsets[p.batch][i]), int(offsets[p.batch][i+1])
				o.Lengths[key*len(rows)+r] = int32(hi - lo)
			}
			if s.IDs == Int32 {
				copy(o.Values32[at:], m.Values32[lo:hi])
			} else {
				copy(o.Values64[at:], m.Values64[lo:hi])
			}
			if s.Weights {
				copy(o.Weights[at:], m.Weights[lo:hi])
			}
			at += hi - lo
		}
	}
	return o, nil
}
