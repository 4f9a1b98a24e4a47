package tensor

// Gather mixes the rows of a window of mini-batches: row i of the mini-batches returned, counted through all of them,
// is row perm[i] of those given, counted likewise. Mini-batch k returned has the name and the number of rows of
// mini-batch k given, and memory of its own. perm must be a permutation of the window's rows (dataset.RowPermutation);
// all mini-batches must be valid and of one schema. The error wraps ErrShape.
func Gather(window []*MiniBatch, perm []uint32) ([]*MiniBatch, error) {
	if len(window) == 0 {
		if len(perm) != 0 {
			return nil, shapeError("%d rows to gather from no mini-batch", len(perm))
		}
		return nil, nil
	}
	s := window[0].Schema
	total := 0
	for i, m := range window {
		if !m.Schema.Equal(s) {
			return nil, shapeError("mini-batch %d of the window has another schema", i)
		}
		if err := m.Validate(); err != nil {
			return nil, err
		}
		total += m.Rows
	}
	if len(perm) != total {
		return nil, shapeError("%d rows to gather from a window of %d", len(perm), total)
	}
	seen := make([]bool, total)
	for i, p := range perm {
		if int64(p) >= int64(total) || seen[p] {
			return nil, shapeError("row %d of the permutation is %d, out of range or there twice", i, p)
		}
		seen[p] = true
	}

	// from[p] is where row p of the window is.
	from := make([]place, 0, total)
	offsets := make([][]int64, len(window)) // of the lists
	for i, m := range window {
		for r := range m.Rows {
			from = append(from, place{i, r})
		}
		if !s.Fixed() {
			offsets[i] = m.Offsets(make([]int64, 0, len(m.Lengths)+1))
		}
	}
	out := make([]*MiniBatch, len(window))
	at := 0
	for k, m := range window {
		rows := make([]place, m.Rows)
		for r := range rows {
			rows[r] = from[perm[at+r]]
		}
		at += m.Rows
		o, err := gatherOne(window, offsets, rows)
		if err != nil {
			return nil, err
		}
		o.Name = m.Name
		out[k] = o
	}
	return out, nil
}

// place is a row of a window.
type place struct{ batch, row int }

// gatherOne makes a mini-batch of the rows.
func gatherOne(window []*MiniBatch, offsets [][]int64, rows []place) (*MiniBatch, error) {
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
			copy(o.Dense[r*d:(r+1)*d], window[p.batch].Dense[p.row*d:(p.row+1)*d])
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
