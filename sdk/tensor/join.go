package tensor

import (
	"fmt"
	"sync"
)

// Memory keeps the memory of released mini-batches for later ones: new memory costs more time than what is copied into
// it. The zero Memory is empty. It may be used from any goroutine.
type Memory struct{ pool sync.Pool }

// Join returns the mini-batch of which parts are the fragments: all of them, in their order. The result has memory of
// its own, which goes back to p when its last holder has released it, and one holder. It is deduplicated if the schema
// has sets. The parts stay the caller's to release. The error wraps ErrShape and names the first part that is not the
// fragment that comes next.
func (p *Memory) Join(parts []*MiniBatch) (*MiniBatch, error) {
	if len(parts) == 0 {
		return nil, shapeError("no fragment to join")
	}
	first := parts[0]
	rows, values := 0, 0
	for i, part := range parts {
		if err := checkPart(first, part, Fragment{Index: i, Of: len(parts)}); err != nil {
			return nil, fmt.Errorf("join mini-batch %v: fragment %d of %d: %w", first.Name, i, len(parts), err)
		}
		rows, values = rows+part.Rows, values+part.Values()
	}
	o, err := p.make(first.Schema, rows, values)
	if err != nil {
		return nil, err
	}
	o.Name = first.Name
	joinRows(o, parts)
	joinKeys(o, parts)
	return o.Deduplicate()
}

// make returns a mini-batch whose tensors have still to be written.
func (p *Memory) make(schema *Schema, rows, values int) (*MiniBatch, error) {
	extents, err := Layout(schema, rows, values)
	if err != nil {
		return nil, err
	}
	kept, _ := p.pool.Get().(*[]byte)
	if kept == nil || int64(cap(*kept)) < extents.Bytes {
		made := make([]byte, extents.Bytes)
		kept = &made
	}
	m, err := FromMemory(schema, rows, values, (*kept)[:extents.Bytes], extents, func() { p.pool.Put(kept) })
	if err == nil {
		m.lent = false
	}
	return m, err
}

// checkPart checks that a part is a given fragment of first's mini-batch, and that its tensors have their shapes. Only
// the first part's schema is checked by itself, when the whole mini-batch is made.
func checkPart(first, p *MiniBatch, want Fragment) error {
	switch {
	case p.Name != first.Name:
		return shapeError("it is of mini-batch %v", p.Name)
	case !p.Schema.Equal(first.Schema):
		return shapeError("it has another schema: %s", diffSchemas(first.Schema, p.Schema))
	case p.Unique != nil:
		return shapeError("it is deduplicated: join first")
	case p.Fragment != want:
		return shapeError("it is fragment %v, want %v", p.Fragment, want)
	}
	return p.validateTensors()
}

// joinRows copies the tensors that have one line a row.
func joinRows(o *MiniBatch, parts []*MiniBatch) {
	row, d := 0, len(o.Schema.Dense)
	for _, p := range parts {
		copy(o.Label[min(row, len(o.Label)):], p.Label)
		copy(o.Dense[min(row*d, len(o.Dense)):], p.Dense)
		copy(o.Dense16[min(row*d, len(o.Dense16)):], p.Dense16)
		row += p.Rows
	}
}

// joinKeys copies the sparse tensors: for each key the parts' runs, one after the other.
func joinKeys(o *MiniBatch, parts []*MiniBatch) {
	fixed := o.Schema.Fixed()
	offsets := make([][]int64, len(parts))
	for i, p := range parts {
		offsets[i] = p.OffsetPerKey()
	}
	value, row := 0, 0 // of the whole mini-batch's tensors
	for key := range o.Schema.Keys {
		for i, p := range parts {
			from, to := offsets[i][key], offsets[i][key+1]
			if o.Schema.IDs == Int32 {
				copy(o.Values32[value:], p.Values32[from:to])
			} else {
				copy(o.Values64[value:], p.Values64[from:to])
			}
			if o.Schema.Weights {
				copy(o.Weights[value:], p.Weights[from:to])
			}
			if !fixed {
				copy(o.Lengths[row:], p.Lengths[key*p.Rows:(key+1)*p.Rows])
			}
			value, row = value+int(to-from), row+p.Rows
		}
	}
}
