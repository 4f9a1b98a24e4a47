package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// addGraphRow computes the values of graph g, whose columns begin at column i, for a row of the partition, and runs its
// sinks. The row is row b of the mini-batch.
func (r *Reader) addGraphRow(g *program.Graph, t *Tensors, lists [][]weightedIDs, i, b int, row int64) error {
	var values []any
	for k := range r.program.Parts(i) {
		if r.program.Columns[i+k].MapLeaf != program.NoPart {
			features, err := r.graphFeatures(i+k, row)
			if err != nil {
				return err
			}
			values = append(values, features...)
			continue
		}
		v, err := r.readValue(i+k, row)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	for k := range g.Steps {
		s := &g.Steps[k]
		var inputs []any
		for _, n := range s.Inputs {
			inputs = append(inputs, values[n])
		}
		v, err := r.eval.steps[s].evaluate(inputs)
		if err != nil {
			return fmt.Errorf("graph of column %q: step %d: row %d: %w", r.program.Columns[i].Name, k, row, err)
		}
		values = append(values, v)
	}
	for k := range g.Sinks {
		s := &g.Sinks[k]
		list, err := r.storeValue(t, &s.Sink, b, rowvalue.WithoutScores(values[s.Value]))
		if err != nil {
			return fmt.Errorf("graph of column %q: sink %d: row %d: %w", r.program.Columns[i].Name, k, row, err)
		}
		if s.Sink.To == program.ToSparse {
			lists[s.Sink.Index][b].ids = list
			switch {
			case s.Scored:
				lists[s.Sink.Index][b].weights = values[s.Value].(rowvalue.ScoredList).Scores[:len(list)]
			case r.program.Output.Weights:
				lists[s.Sink.Index][b].weights = ones(len(list))
			}
		}
	}
	return nil
}
