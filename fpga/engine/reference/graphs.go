package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/cartesian"
	"github.com/millrace/millrace/fpga/unit/hashcross"
	"github.com/millrace/millrace/fpga/unit/idlisttransform"
)

// addGraphRow computes the values of graph g, whose columns begin at column i, for a row of the partition, and runs its
// sinks. The row is row b of the mini-batch.
func (r *Reader) addGraphRow(g *program.Graph, t *Tensors, lists [][]weightedIDs, i, b int, row int64) error {
	var values []any
	var types []program.ValueType
	for k := range r.program.Parts(i) {
		c := &r.program.Columns[i+k]
		if c.MapLeaf != program.NoPart {
			features, of, err := r.graphFeatures(i+k, row)
			if err != nil {
				return err
			}
			values, types = append(values, features...), append(types, of...)
			continue
		}
		v, err := r.readValue(i+k, row)
		if err != nil {
			return err
		}
		values, types = append(values, v), append(types, program.ValueType{Kind: c.Kind, List: c.List})
	}
	for k := range g.Steps {
		v, of, err := r.eval.runStep(&g.Steps[k], values, types)
		if err != nil {
			return fmt.Errorf("graph of column %q: step %d: row %d: %w", r.program.Columns[i].Name, k, row, err)
		}
		values, types = append(values, v), append(types, of)
	}
	for k := range g.Sinks {
		s := &g.Sinks[k]
		of := types[s.Value]
		column := &program.Column{Kind: of.Kind, List: of.List}
		list, err := r.storeValue(t, column, &s.Sink, b, withoutScores(values[s.Value]))
		var scores []any
		if s.Scored && err == nil {
			for _, score := range values[s.Value].(scoredRow).scores[:len(list)] {
				scores = append(scores, score)
			}
		}
		if err != nil {
			return fmt.Errorf("graph of column %q: sink %d: row %d: %w", r.program.Columns[i].Name, k, row, err)
		}
		if s.Sink.To == program.ToSparse {
			lists[s.Sink.Index][b].ids = list
			if r.program.Output.Weights {
				lists[s.Sink.Index][b].weights = entryWeights(len(list), s.Scored, scores)
			}
		}
	}
	return nil
}

// runStep returns the value of a step and its type.
func (e *evaluator) runStep(s *program.Step, values []any, types []program.ValueType) (any, program.ValueType, error) {
	v, of := values[s.Inputs[0]], types[s.Inputs[0]]
	if s.Combine != nil {
		var inputs []any
		var inputTypes []program.ValueType
		for _, n := range s.Inputs {
			inputs, inputTypes = append(inputs, values[n]), append(inputTypes, types[n])
		}
		of, _ = s.Combine.Yield(inputTypes)
		var err error
		if v, err = e.combineValues(s.Combine, inputs, inputTypes, of); err != nil {
			return nil, of, fmt.Errorf("%v: %w", s.Combine.Unit(), err)
		}
	}
	column := &program.Column{Kind: of.Kind, List: of.List}
	var err error
	if row, ok := v.(scoredRow); ok {
		v, err = e.runScoredChain(s.Ops, column, row)
	} else {
		v, err = e.runChain(s.Ops, column, v)
	}
	for _, op := range s.Ops {
		of.Kind = op.Out(of.Kind)
	}
	return v, of, err
}

// combineValues applies an operator of several inputs to a row, which yields a value of a type.
func (e *evaluator) combineValues(c program.Combiner, inputs []any, types []program.ValueType,
	of program.ValueType) (any, error) {
	switch c.(type) {
	case program.Enumerate, program.WithScores, program.Scores:
		return combineScored(c, inputs, types)
	}
	for i := range inputs {
		inputs[i] = withoutScores(inputs[i])
	}
	if cross, is := c.(program.HashCross); is {
		return crossOf(cross, inputs), nil
	}
	if scores, is := c.(program.ComputeScore); is {
		return scoreOf(scores, inputs)
	}
	if o, is := c.(program.Wasm); is {
		return e.callFunction(o, inputs)
	}
	a, b := idsOf(inputs[0]), idsOf(inputs[1])
	if _, is := c.(program.IDListTransform); is {
		return listOfIDs(idlisttransform.Reference(a, b)), nil
	}
	o, ok := c.(program.Cartesian)
	if !ok {
		return nil, fmt.Errorf("%T is no operator of the reference", c)
	}
	if len(a) > 0 && len(b) > 0 && int64(len(a))*int64(len(b)) > o.MaxLength && o.Overflow == program.OverflowFail {
		return nil, fmt.Errorf("%w: %d x %d ids, want at most %d", ErrData, len(a), len(b), o.MaxLength)
	}
	ids, _ := cartesian.Reference(a, b, cartesian.Params{MaxLength: o.MaxLength})
	if !of.List {
		if len(ids) == 0 {
			return nil, nil
		}
		return ids[0], nil
	}
	return listOfIDs(ids), nil
}

// crossOf returns what hash_cross makes of a row's ids: nothing if one is null.
func crossOf(o program.HashCross, inputs []any) any {
	var ids []int64
	for _, in := range inputs {
		if in == nil {
			return nil
		}
		ids = append(ids, in.(int64))
	}
	return hashcross.Reference(ids, o.Buckets)
}

// listOfIDs returns ids as a row's value.
func listOfIDs(ids []int64) []any {
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

// idsOf returns the ids of a row's value: none of a null, and none of a list that holds a null.
func idsOf(v any) []int64 {
	list, isList := v.([]any)
	switch {
	case v == nil, isList && holdsNull(list):
		return nil
	case !isList:
		return []int64{v.(int64)}
	}
	ids := make([]int64, len(list))
	for i, e := range list {
		ids[i] = e.(int64)
	}
	return ids
}
