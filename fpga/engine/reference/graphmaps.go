package reference

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// graphFeatures returns the features that a graph takes of a row of the map whose values are column i. Columns of keys
// and scores have none.
func (r *Reader) graphFeatures(i int, row int64) (values []any, err error) {
	c := &r.program.Columns[i]
	if c.MapLeaf != program.MapValues {
		return nil, nil
	}
	parts := 2
	if i+1 < len(r.program.Columns) && r.program.Columns[i+1].MapLeaf == program.MapScores {
		parts = 3
	}
	m, err := r.readMapRow(i-1, parts, row)
	if err != nil {
		return nil, err
	}
	for _, pick := range c.Picks {
		v, scores := m.pickEntry(pick)
		if pick.Scored {
			ids, _ := v.([]any)
			reals, err := realScores(scores)
			if err != nil {
				return nil, err
			}
			v = rowvalue.ScoredList{IDs: ids, Scores: reals}
		}
		values = append(values, v)
	}
	return values, nil
}
