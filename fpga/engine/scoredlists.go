package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

// Lists of ids with scores are values of graphs. The scores lie beside the ids, and no operator of a chain touches
// them: a chain keeps all ids of a list, its first ids or none, and cutScores does the same to the scores afterwards.

// enumerateCombiner is the operator enumerate.
type enumerateCombiner struct{}

// mostElements implements combiner.
func (enumerateCombiner) mostElements(inputs []int64) int64 { return inputs[0] }

// combine implements combiner.
func (enumerateCombiner) combine(to *graphValue, inputs []*chainValues, _ int) error {
	in := to.listOf(0, inputs[0])
	to.setLists(append(to.lengths[:0], in.Lengths...), append(to.int64s[:0], in.IDs...))
	to.setScores(scoredlist.AppendPositions(to.scores[:0], in.Lengths))
	return nil
}

// joinCombiner is the operator with_scores.
type joinCombiner struct{}

// mostElements implements combiner.
func (joinCombiner) mostElements(inputs []int64) int64 { return inputs[0] }

// combine implements combiner.
func (joinCombiner) combine(to *graphValue, inputs []*chainValues, _ int) error {
	ids := to.listOf(0, inputs[0])
	scores := scoredlist.Scores{ForAll: !inputs[1].list}
	scores.Lengths, scores.Scores = to.scoresOf(1, inputs[1])
	lists := scoredlist.Lists{Lengths: to.lengths[:0], IDs: to.int64s[:0], Scores: to.scores[:0]}
	err := lists.Join(scoredlist.IDs{Lengths: ids.Lengths, IDs: ids.IDs}, scores)
	if err != nil {
		return err
	}
	to.setLists(lists.Lengths, lists.IDs)
	to.setScores(lists.Scores)
	return nil
}

// scoresCombiner is the operator scores.
type scoresCombiner struct{}

// mostElements implements combiner.
func (scoresCombiner) mostElements(inputs []int64) int64 { return inputs[0] }

// combine implements combiner.
func (scoresCombiner) combine(to *graphValue, inputs []*chainValues, _ int) error {
	in := inputs[0]
	to.view = chainValues{kind: program.Float32, count: len(in.scores), float32s: in.scores, list: true,
		lengths: in.lengths}
	return nil
}

// setScores gives the ids of the value their scores.
func (g *graphValue) setScores(scores []float32) {
	g.scores = scores
	g.view.scores = scores
}

// noteLengths remembers the lengths of lists with scores, which a chain may change.
func (g *graphValue) noteLengths(v *chainValues) {
	if v.scores != nil {
		g.originalLengths = append(g.originalLengths[:0], v.lengths...)
	}
}

// cutScores drops the scores of ids that a chain has dropped since noteLengths.
func (g *graphValue) cutScores(v *chainValues) {
	if v.scores == nil || len(v.scores) == v.count {
		return
	}
	kept, at := resize(&g.keptScores, v.count)[:0], 0
	for row, length := range v.lengths {
		kept = append(kept, v.scores[at:at+int(length)]...)
		at += int(g.originalLengths[row])
	}
	g.keptScores, v.scores = kept, kept
}
