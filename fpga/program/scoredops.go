package program

// Lists of ids with scores are values of graphs: an operator makes them, chains keep the scores of the ids that they
// keep, and a sink takes the scores as weights if it says so.

// Enumerate gives each id of a list its position as its score, from 0 on. A scalar is a list of one id.
type Enumerate struct{}

// WithScores puts ids, the first input, and their scores together. Scores are as many as the ids of their row, or, of
// an input that is a scalar, one for all of them. A row without ids or without scores is empty.
type WithScores struct{}

// Scores takes the scores of a list of ids as numbers.
type Scores struct{}

// Unit implements [Combiner].
func (Enumerate) Unit() Unit { return UnitEnumerate }

// Unit implements [Combiner].
func (WithScores) Unit() Unit { return UnitWithScores }

// Unit implements [Combiner].
func (Scores) Unit() Unit { return UnitScores }

// scoredIDs is the type of a list of ids with scores.
var scoredIDs = ValueType{Kind: Int64, List: true, Scored: true}

// Yield implements [Combiner].
func (Enumerate) Yield(inputs []ValueType) (ValueType, bool) {
	ok := len(inputs) == 1 && inputs[0].Kind == Int64
	return scoredIDs, ok
}

// Yield implements [Combiner].
func (WithScores) Yield(inputs []ValueType) (ValueType, bool) {
	ok := len(inputs) == 2 && inputs[0].Kind == Int64 && inputs[1].Kind == Float32
	return scoredIDs, ok
}

// Yield implements [Combiner].
func (Scores) Yield(inputs []ValueType) (ValueType, bool) {
	return ValueType{Kind: Float32, List: true}, len(inputs) == 1 && inputs[0].Scored
}

// scoredOp reports whether an operator makes or takes scores of ids, which only version 1.5 knows.
func scoredOp(c Combiner) bool {
	switch c.(type) {
	case Enumerate, WithScores, Scores:
		return true
	}
	return false
}

// usesScores reports whether a graph makes lists of ids with scores.
func (g *Graph) usesScores() bool {
	for i := range g.Steps {
		if scoredOp(g.Steps[i].Combine) {
			return true
		}
	}
	return g.takesScores()
}

// takesScores reports whether a sink takes scores as weights.
func (g *Graph) takesScores() bool {
	for i := range g.Sinks {
		if g.Sinks[i].Scored {
			return true
		}
	}
	return false
}

// scoresGraphs reports whether a graph makes lists of ids with scores.
func (p *Program) scoresGraphs() bool {
	for i := range p.Graphs {
		if p.Graphs[i].usesScores() {
			return true
		}
	}
	return false
}

// weightsOfGraphs reports whether the section of graphs says that there are weights: the section of maps says it if
// there is one.
func (p *Program) weightsOfGraphs() bool { return p.Output.Weights && !p.hasMaps() }
