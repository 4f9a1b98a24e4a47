package slicer

// Learned is what slicers saw of the pages of each column of a program: guesses for chunks that were not looked at yet.
// The zero value knows nothing.
type Learned struct{ columns []pageSizes }

// pageSizes is what was seen of one column's pages.
type pageSizes struct {
	pageBytes    uint64 // bytes of a page in the file
	pageRows     int64  // rows of a page
	scratchBytes uint64 // most bytes of an unpacked page
	dictBytes    uint64 // most bytes of a decoded dictionary

	// askRoom: memory is short, and a room that is not known is left for the engine to ask for instead of being
	// guessed.
	askScratch bool
}

// copyForColumns returns a copy for a program of n columns.
func (l *Learned) copyForColumns(n int) Learned {
	c := Learned{columns: make([]pageSizes, n)}
	if l != nil {
		copy(c.columns, l.columns)
	}
	return c
}

// Merge takes in what a later slicer of the same program saw.
func (l *Learned) Merge(later *Learned) {
	if l.columns == nil {
		l.columns = make([]pageSizes, len(later.columns))
	}
	for i, seen := range later.columns {
		known := &l.columns[i]
		known.pageBytes, known.pageRows = seen.pageBytes, seen.pageRows
		known.scratchBytes = max(known.scratchBytes, seen.scratchBytes)
		known.dictBytes = max(known.dictBytes, seen.dictBytes)
	}
}
