package text

const (
	// groups of eight fields have a byte of validity each in a row's planes.
	groups = fields / 8

	// vectorSlack is how many bytes behind a line the vector kernels may look at.
	vectorSlack = 128

	// vectorBytes is the most that is indexed at a time: positions are 16 bits wide. A block of well-formed lines fits
	// in.
	vectorBytes = 32 << 10

	// startsRoom is room for a block's positions, the position before them, the further positions of the last 64 bytes,
	// the elements that the kernel writes past those, and an element in front.
	startsRoom = 2 + blockRows*fields + 64 + 64
)

// vectorSet says which kernels are in use.
type vectorSet uint8

const (
	noVectors vectorSet = iota
	words256            // AVX2: four fields at a time
	bytes512            // AVX-512 with permutations of bytes: eight
)

// bytesBefore returns how many bytes before a line the kernels may read.
func (s vectorSet) bytesBefore() int {
	if s == words256 {
		return 8
	}
	return 0
}

// lineIndex says where the fields of the next lines begin. The lines are known to have the right number of fields;
// whether the fields are well-formed is not known.
type lineIndex struct {
	lines        int // lines indexed, and not taken yet
	nextStart    int // The first of starts has this field first.
	windowOffset int // The starts count from it.
	// reach is how many lines the next index is to have: one, behind a line that had another number of fields, then
	// twice as many each time, so that lines are not indexed in vain again and again.
	indexLines int

	starts [startsRoom]uint16 // where fields begin; the second element is the first line's first field
}

// fillIndex indexes up to most lines from pos on, unless lines are indexed already, and reports whether a line is.
func (x *lineIndex) fillIndex(s vectorSet, window []byte, pos, fields, most int) bool {
	if x.lines > 0 {
		return true
	}
	room := min(len(window)-pos-vectorSlack, vectorBytes)
	if room <= 0 || pos < s.bytesBefore() {
		return false
	}
	want := min(most, x.indexLines)
	x.starts[0], x.starts[1] = 0, 0
	x.lines = min(s.indexFields(window[pos:pos+room], &x.starts, fields, want*fields)/fields, want)
	x.nextStart, x.windowOffset, x.indexLines = 1, pos, min(2*x.indexLines, blockRows)
	if x.lines < want {
		x.indexLines = 1
	}
	return x.lines > 0
}

// takeLines takes n lines and returns where the bytes behind them begin.
func (x *lineIndex) takeLines(n, fields int) (pos int) {
	x.lines -= n
	x.nextStart += n * fields
	return x.windowOffset + int(x.starts[x.nextStart])
}

// columnTargets are a call's columns as the kernels want them: nil where the call has none.
type columnTargets struct {
	values [fields]*int64
	valid  [fields]*byte
	wanted [groups]struct{ values, valid bool }
}

// pointTo notes where the columns lie.
func (t *columnTargets) pointTo(c *Columns) {
	*t = columnTargets{}
	for f := range fields {
		values, valid := c.column(f)
		if len(values) > 0 {
			t.values[f], t.wanted[f/8].values = &values[0], true
		}
		if len(valid) > 0 {
			t.valid[f], t.wanted[f/8].valid = &valid[0], true
		}
	}
}
