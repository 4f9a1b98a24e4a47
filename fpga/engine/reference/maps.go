package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// mapEntries is one row of a map.
type mapEntries struct {
	keys, values, scores []any
}

// readMapRow returns a row of the map whose keys are column i of the program, with values in column i+1 and, if the map
// has three parts, scores in column i+2.
func (r *Reader) readMapRow(i, parts int, row int64) (*mapEntries, error) {
	var all [3][]any
	for k := range parts {
		v, err := r.readValue(i+k, row)
		if err != nil {
			return nil, err
		}
		all[k], _ = v.([]any) // a null map is an empty one
		if len(all[k]) != len(all[0]) {
			return nil, fmt.Errorf("column %q: row %d: %w: %d entries, %q has %d", r.program.Columns[i+k].Name, row,
				ErrData, len(all[k]),
				r.program.Columns[i].Name, len(all[0]))
		}
	}
	m := &mapEntries{all[0], all[1], all[2]}
	for e := range m.scores {
		ids, _ := m.values[e].([]any)
		scores, _ := m.scores[e].([]any)
		if len(ids) != len(scores) {
			return nil, fmt.Errorf("column %q: row %d: %w: %d scores of %d ids", r.program.Columns[i+2].Name, row,
				ErrData, len(scores), len(ids))
		}
	}
	return m, nil
}

// isKey reports whether the key of an entry is that of a pick.
func isKey(key any, p program.Pick) bool {
	if text, ok := key.([]byte); ok {
		return string(text) == p.Text
	}
	return key == any(p.Key)
}

// pickEntry returns the value of the last entry with the pick's key, and its scores if the pick takes them. An entry
// with a null among its scores counts as a null.
func (m *mapEntries) pickEntry(p program.Pick) (value any, scores []any) {
	at := -1
	for e, key := range m.keys {
		if isKey(key, p) {
			at = e
		}
	}
	if at < 0 {
		return nil, nil
	}
	value = m.values[at]
	if p.Scored {
		scores, _ = m.scores[at].([]any)
		if rowvalue.HoldsNull(scores) {
			return nil, nil
		}
	}
	return value, scores
}

// realScores returns the scores of an entry as float32.
func realScores(scores []any) ([]float32, error) {
	reals := make([]float32, len(scores))
	for i, x := range scores {
		if _, ok := x.(float32); !ok {
			var err error
			if x, err = evaluateScalar(convert.Op{To: program.Float32}, x); err != nil {
				return nil, err
			}
		}
		reals[i] = x.(float32)
	}
	return reals, nil
}

// ones returns the weights of n ids without scores.
func ones(n int) []float32 {
	weights := make([]float32, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}
