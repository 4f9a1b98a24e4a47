package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/cartesian"
	"github.com/millrace/millrace/fpga/unit/hashcross"
	"github.com/millrace/millrace/fpga/unit/idlisttransform"
)

// cartesianCombiner is the operator cartesian.
type cartesianCombiner struct{ params cartesian.Params }

// mostElements implements combiner.
func (c *cartesianCombiner) mostElements(inputs []int64) int64 {
	return min(inputs[0]*inputs[1], c.params.MaxLength)
}

// combine implements combiner.
func (c *cartesianCombiner) combine(to *graphValue, inputs []*chainValues, rows int) error {
	a, b := inputs[0], inputs[1]
	if !a.list && !b.list {
		to.beginScalars(rows, a, b)
		cartesian.Scalars(to.int64s, a.int64s, b.int64s)
		return nil
	}
	lengths, ids, err := cartesian.Lists(to.lengths[:0], to.int64s[:0], cartesian.Input(to.listOf(0, a)),
		cartesian.Input(to.listOf(1, b)), c.params)
	if err != nil {
		return err
	}
	to.setLists(lengths, ids)
	return nil
}

// intersectionCombiner is the operator id_list_transform.
type intersectionCombiner struct{}

// mostElements implements combiner.
func (intersectionCombiner) mostElements(inputs []int64) int64 { return inputs[0] }

// combine implements combiner.
func (intersectionCombiner) combine(to *graphValue, inputs []*chainValues, _ int) error {
	lengths, ids, err := to.intersection.Lists(to.lengths[:0], to.int64s[:0],
		idlisttransform.Input(to.listOf(0, inputs[0])), idlisttransform.Input(to.listOf(1, inputs[1])))
	if err != nil {
		return err
	}
	to.setLists(lengths, ids)
	return nil
}

// crossCombiner is the operator hash_cross.
type crossCombiner struct{ hasher hashcross.Hasher }

// mostElements implements combiner.
func (*crossCombiner) mostElements([]int64) int64 { return 1 }

// combine implements combiner.
func (c *crossCombiner) combine(to *graphValue, inputs []*chainValues, rows int) error {
	to.beginScalars(rows, inputs...)
	var columns [program.MaxInputs][]int64
	for i, in := range inputs {
		columns[i] = in.int64s
	}
	c.hasher.Cross(to.int64s, columns[:len(inputs)])
	return nil
}

// setLists makes lists of ids the value.
func (g *graphValue) setLists(lengths []int32, ids []int64) {
	g.lengths, g.int64s = lengths, ids
	g.view = chainValues{kind: program.Int64, count: len(ids), int64s: ids, list: true, lengths: lengths,
		ownsValues: true, ownsLengths: true}
}

// beginScalars makes room for an id a row. A row is null if one of the inputs is.
func (g *graphValue) beginScalars(rows int, inputs ...*chainValues) {
	g.int64s = resize(&g.int64s, rows)
	g.view = chainValues{kind: program.Int64, count: rows, int64s: g.int64s, ownsValues: true, ownsValid: true}
	for _, in := range inputs {
		if in.valid == nil {
			continue
		}
		if g.view.valid == nil {
			g.valid = append(g.valid[:0], in.valid[:rows]...)
			g.view.valid = g.valid
			continue
		}
		for i, ok := range in.valid[:rows] {
			g.valid[i] &= ok
		}
	}
}

// idLists is a list of ids a row, one behind the other. It is the form in which units take them.
type idLists struct {
	Lengths []int32
	IDs     []int64
}

// listOf returns input i of a step as lists: a scalar is a list of one id, and a null an empty one.
func (g *graphValue) listOf(i int, v *chainValues) idLists {
	if v.list {
		return idLists{Lengths: v.lengths, IDs: v.int64s[:v.count]}
	}
	lengths := resize(&g.listLengths[i], v.count)
	g.listLengths[i] = lengths
	if v.valid == nil {
		for r := range lengths {
			lengths[r] = 1
		}
		return idLists{Lengths: lengths, IDs: v.int64s[:v.count]}
	}
	ids := resize(&g.listIDs[i], v.count)[:0]
	for r, ok := range v.valid[:v.count] {
		if lengths[r] = int32(ok); ok != 0 {
			ids = append(ids, v.int64s[r])
		}
	}
	g.listIDs[i] = ids
	return idLists{Lengths: lengths, IDs: ids}
}
