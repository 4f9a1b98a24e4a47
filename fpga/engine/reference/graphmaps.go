package reference

import "github.com/millrace/millrace/fpga/program"

// graphFeatures returns the features that a graph takes of a row of the map whose values are column i, and their types.
// Columns of keys and scores have none.
func (r *Reader) graphFeatures(i int, row int64) (values []any, types []program.ValueType, err error) {
	c := &r.program.Columns[i]
	if c.MapLeaf != program.MapValues {
		return nil, nil, nil
	}
	parts := 2
	if i+1 < len(r.program.Columns) && r.program.Columns[i+1].MapLeaf == program.MapScores {
		parts = 3
	}
	m, err := r.readMapRow(i-1, parts, row)
	if err != nil {
		return nil, nil, err
	}
	for _, pick := range c.Picks {
		v, scores := m.pickEntry(pick)
		if pick.Scored {
			v = scoredEntry(v, scores)
		}
		values = append(values, v)
		types = append(types, program.ValueType{Kind: c.Kind, List: c.List, Scored: pick.Scored})
	}
	return values, types, nil
}

// scoredEntry returns an entry's ids with their scores.
func scoredEntry(v any, scores []any) scoredRow {
	ids, _ := v.([]any)
	return scoredRow{ids, entryWeights(len(ids), true, scores)}
}
