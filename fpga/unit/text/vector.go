package text

const (
	// groups of eight fields have a byte of validity each in a row's planes.
	groups = fields / 8

	// vectorSlack is how many bytes behind a line the vector kernels may look at.
	vectorSlack = 128

	// vectorBytes is the most that is indexed at a time: positions are 16 bits wide. A block of well-formed lines fits in.
	vectorBytes = 32 << 10

	// startsRoom is for a block's positions, the one before them, what the last 64 bytes hold besides and what the kernel writes past
	// that, and an element in front.
	startsRoom = 2 + block*fields + 64 + 64
)

// vectorSet is the kernels in use.
type vectorSet uint8

const (
	noVectors vectorSet = iota
	words256            // AVX2: four fields at a time
	bytes512            // AVX-512 with permutations of bytes: eight
)

// before is how many bytes before a line the kernels may look at.
func (s vectorSet) before() int {
	if s == words256 {
		return 8
	}
	return 0
}

// ahead is what is known of the lines in front: that so many have the right number of fields, and where those begin. Whether the fields are
// well-formed is not known.
type ahead struct {
	rows int // lines indexed, and not taken yet
	next int // of starts: the first one's first field
	data int // of the window: what starts count from
	// reach is how many lines the next index is to have: one, behind a line that had another number of fields, then twice as many each
	// time, so that lines are not indexed in vain again and again.
	reach int

	starts [startsRoom]uint16 // where fields begin; the second element is the first line's first field
}

// look makes an index of up to most lines from pos on, if there is none, and tells whether a line is known.
func (a *ahead) look(s vectorSet, window []byte, pos, fields, most int) bool {
	if a.rows > 0 {
		return true
	}
	room := min(len(window)-pos-vectorSlack, vectorBytes)
	if room <= 0 || pos < s.before() {
		return false
	}
	want := min(most, a.reach)
	a.starts[0], a.starts[1] = 0, 0
	a.rows = min(s.index(window[pos:pos+room], &a.starts, fields, want*fields)/fields, want)
	a.next, a.data, a.reach = 1, pos, min(2*a.reach, block)
	if a.rows < want {
		a.reach = 1
	}
	return a.rows > 0
}

// take takes n lines and returns where what is behind them begins.
func (a *ahead) take(n, fields int) (pos int) {
	a.rows -= n
	a.next += n * fields
	return a.data + int(a.starts[a.next])
}

// targets are a call's columns as the kernels want them: nil where there is none.
type targets struct {
	values [fields]*int64
	valid  [fields]*byte
	wanted [groups]struct{ values, valid bool }
}

// aim notes where the columns lie.
func (t *targets) aim(c *Columns) {
	*t = targets{}
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
