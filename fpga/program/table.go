package program

import (
	"math"
	"slices"
)

// Limits of a table of texts.
const (
	MaxTexts     = 1 << 16 // texts of one table
	MaxTextBytes = 4096    // bytes of a text
)

// Table is a list of numbers or texts that operators use: borders of buckets, keys, values. One of the lists is set. A
// program holds each table once, however many operators use it.
type Table struct {
	Float32s []float32
	Float64s []float64
	Int64s   []int64
	Texts    []string
}

// Equal reports whether both tables have the same texts or numbers, bit for bit, so that -0 and 0 differ. Lists over
// the same memory, as lowering and Unmarshal make them, are recognised without a comparison of their values.
func (t Table) Equal(o Table) bool {
	same32 := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	same64 := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	sameInt := func(x, y int64) bool { return x == y }
	sameText := func(x, y string) bool { return x == y }
	return equalLists(t.Float32s, o.Float32s, same32) && equalLists(t.Float64s, o.Float64s, same64) &&
		equalLists(t.Int64s, o.Int64s, sameInt) && equalLists(t.Texts, o.Texts, sameText)
}

func equalLists[T any](a, b []T, eq func(T, T) bool) bool {
	if len(a) != len(b) || len(a) == 0 {
		return len(a) == len(b)
	}
	return &a[0] == &b[0] || slices.EqualFunc(a, b, eq)
}

// indexOfTable returns the index of a table, or -1.
func indexOfTable(tables []Table, of Table) int { return slices.IndexFunc(tables, of.Equal) }

// hasTexts reports whether a table of the program holds texts.
func (p *Program) hasTexts() (found bool) {
	p.forEachOp(func(op Op) {
		found = found || slices.ContainsFunc(Tables(op), func(t Table) bool { return len(t.Texts) > 0 })
	})
	return found
}

// collectTables returns the tables of a program, in order of first use, each once.
func collectTables(p *Program) []Table {
	var tables []Table
	p.forEachOp(func(op Op) {
		for _, t := range Tables(op) {
			if indexOfTable(tables, t) < 0 {
				tables = append(tables, t)
			}
		}
	})
	return tables
}

// appendTo appends kind, 3 reserved, count u32 and the numbers, padded; of texts their lengths, padded, and then the
// texts, padded.
func (t Table) appendTo(to []byte) []byte {
	kind := Float32
	switch {
	case len(t.Float64s) > 0:
		kind = Float64
	case len(t.Int64s) > 0:
		kind = Int64
	case len(t.Texts) > 0:
		kind = Bytes
	}
	to = append(to, byte(kind), 0, 0, 0)
	to = le.AppendUint32(to, uint32(len(t.Float32s)+len(t.Float64s)+len(t.Int64s)+len(t.Texts)))
	start := len(to)
	for _, x := range t.Float32s {
		to = appendFloat32(to, x)
	}
	for _, x := range t.Float64s {
		to = appendFloat64(to, x)
	}
	for _, x := range t.Int64s {
		to = le.AppendUint64(to, uint64(x))
	}
	for _, text := range t.Texts {
		to = le.AppendUint32(to, uint32(len(text)))
	}
	to = padTo8Bytes(to, start)
	start = len(to)
	for _, text := range t.Texts {
		to = append(to, text...)
	}
	return padTo8Bytes(to, start)
}

// tableSet is the section of tables as it was read, and which of the tables an operator uses.
type tableSet struct {
	tables    []Table
	used      []bool
	operators Operators
	made      map[operatorKey]Op
}

// newTableSet makes a set of n tables that are still to be read.
func newTableSet(n int, operators Operators) tableSet {
	return tableSet{tables: make([]Table, n), used: make([]bool, n), operators: operators, made: map[operatorKey]Op{}}
}

func readTables(r *reader, operators Operators) tableSet {
	head := r.takeBytes(8, "tables")
	if r.err != nil {
		return newTableSet(0, operators)
	}
	r.checkZeros(head[4:], "tables")
	n := r.checkCount(uint64(le.Uint32(head)), MaxSinks, tableSize, "tables")
	t := newTableSet(n, operators)
	for i := range t.tables {
		t.tables[i].read(r)
	}
	return t
}

func (t *Table) read(r *reader) {
	head := r.takeBytes(tableSize, "table")
	if r.err != nil {
		return
	}
	r.checkZeros(head[1:4], "table")
	kind := Kind(head[0])
	size := uint64(8)
	if kind == Float32 || kind == Bytes {
		size = 4
	}
	most, what := uint64(MaxBorders), "borders"
	if kind == Bytes {
		most, what = MaxTexts, "texts"
	}
	n := r.checkCount(uint64(le.Uint32(head[4:])), most, size, what)
	b := r.takePadded(uint64(n)*size, what)
	if r.err != nil {
		return
	}
	switch kind {
	case Float32:
		t.Float32s = make([]float32, n)
		for i := range t.Float32s {
			t.Float32s[i] = float32At(b[4*i:])
		}
	case Float64:
		t.Float64s = make([]float64, n)
		for i := range t.Float64s {
			t.Float64s[i] = float64At(b[8*i:])
		}
	case Int64:
		t.Int64s = make([]int64, n)
		for i := range t.Int64s {
			t.Int64s[i] = int64(le.Uint64(b[8*i:]))
		}
	case Bytes:
		t.readTexts(r, b)
	default:
		r.failCorrupt("a table of %v", kind)
	}
}

// readTexts reads the texts of a table, given the bytes of their lengths.
func (t *Table) readTexts(r *reader, lengths []byte) {
	size := uint64(0)
	for i := 0; i < len(lengths); i += 4 {
		n := le.Uint32(lengths[i:])
		if n > MaxTextBytes {
			r.failCorrupt("a text of %d bytes, want at most %d", n, MaxTextBytes)
			return
		}
		size += uint64(n)
	}
	all := string(r.takePadded(size, "texts"))
	if r.err != nil {
		return
	}
	t.Texts = make([]string, len(lengths)/4)
	for i := range t.Texts {
		n := le.Uint32(lengths[4*i:])
		t.Texts[i], all = all[:n], all[n:]
	}
}
