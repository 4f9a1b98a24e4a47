package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// partOf is a program's part of a map in a file's numbering.
func partOf(p program.Part) format.Part {
	switch p {
	case program.MapKeys:
		return format.MapKeys
	case program.MapValues:
		return format.MapValues
	case program.MapScores:
		return format.MapScores
	}
	return format.NoPart
}

// isList tells whether a leaf holds a list where the program's column says so: a leaf of a map has a list a row in any
// case, and what counts is whether that is one of lists.
func isList(l *format.Leaf) bool {
	if l.Part != format.NoPart {
		return l.MaxRep == 2
	}
	return l.List
}

// mapRow is one row of a map.
type mapRow struct {
	keys, values, scores []any
}

// mapRow returns a row of the map whose keys are column i.
func (d *Reader) mapRow(i, parts int, row int64) (*mapRow, error) {
	var all [3][]any
	for k := range parts {
		v, err := d.value(i+k, row)
		if err != nil {
			return nil, err
		}
		all[k], _ = v.([]any) // a null map is an empty one
		if len(all[k]) != len(all[0]) {
			return nil, fmt.Errorf("column %q: row %d: %w: %d entries, %q has %d", d.program.Columns[i+k].Name, row, ErrData, len(all[k]),
				d.program.Columns[i].Name, len(all[0]))
		}
	}
	m := &mapRow{all[0], all[1], all[2]}
	for e := range m.scores {
		ids, _ := m.values[e].([]any)
		scores, _ := m.scores[e].([]any)
		if len(ids) != len(scores) {
			return nil, fmt.Errorf("column %q: row %d: %w: %d scores of %d ids", d.program.Columns[i+2].Name, row, ErrData, len(scores), len(ids))
		}
	}
	return m, nil
}

// pick returns the value of the last entry with the key, nil if there is none, and its scores, if they are asked for.
func (m *mapRow) pick(p program.Pick) (value any, scores []any) {
	at := -1
	for e, key := range m.keys {
		if key == any(p.Key) {
			at = e
		}
	}
	if at < 0 {
		return nil, nil
	}
	value = m.values[at]
	if p.Scored {
		scores, _ = m.scores[at].([]any)
		if holdsNull(scores) {
			return nil, nil
		}
	}
	return value, scores
}

// weights are those of the ids that a chain left of a list, which are the first of it: the scores, or 1 each.
func weights(ids int, scored bool, scores []any) []float32 {
	w := make([]float32, ids)
	for i := range w {
		w[i] = 1
		if scored {
			x := scores[i]
			if _, ok := x.(float32); !ok {
				x = convert(program.Float32, x)
			}
			w[i] = x.(float32)
		}
	}
	return w
}
