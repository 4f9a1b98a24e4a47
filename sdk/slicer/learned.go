package slicer

// Learned holds the sizes of pages that slicers saw for each column of a program. They are guesses for chunks that no
// slicer has read yet. The zero value knows nothing.
type Learned struct{ columns []pageSizes }

// pageSizes holds the sizes seen in one column's pages.
type pageSizes struct {
	pageBytes    uint64 // bytes of a page in the file
	pageRows     int64  // rows of a page
	scratchBytes uint64 // most bytes of an unpacked page
	dictBytes    uint64 // most bytes of a decoded dictionary

	// askScratch: memory is short, and the engine asks for scratch whose size is not known, instead of a guess.
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

// Merge takes in the observations of a later slicer of the same program.
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
