package program

// Lists of ids with scores are values of graphs. A combiner makes such a list. A chain keeps the scores of the ids that
// it keeps. A sink with Scored set writes the scores as weights.

// usesScores reports whether a graph makes lists of ids with scores.
func (g *Graph) usesScores() bool {
	for i := range g.Steps {
		if minorOf(g.Steps[i].Combine) >= 5 {
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
