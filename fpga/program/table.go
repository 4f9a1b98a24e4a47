package program

import (
	"math"
	"slices"
)

// Table is a list of numbers that operators use: borders of buckets, keys, values. One of the lists is set. A program
// holds each table once, however many operators use it.
type Table struct {
	Float32s []float32
	Float64s []float64
	Int64s   []int64
}

// Equal reports whether both tables have the same numbers, bit for bit, so that -0 and 0 differ. Lists over the same
// memory, as lowering and Unmarshal make them, are recognised without a comparison of their values.
func (t Table) Equal(o Table) bool {
	same32 := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	same64 := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	sameInt := func(x, y int64) bool { return x == y }
	return equalNumbers(t.Float32s, o.Float32s, same32) && equalNumbers(t.Float64s, o.Float64s, same64) &&
		equalNumbers(t.Int64s, o.Int64s, sameInt)
}

func equalNumbers[T any](a, b []T, eq func(T, T) bool) bool {
	if len(a) != len(b) || len(a) == 0 {
		return len(a) == len(b)
	}
	return &a[0] == &b[0] || slices.EqualFunc(a, b, eq)
}

// indexOfTable returns the index of a table, or -1.
func indexOfTable(tables []Table, of Table) int { return slices.IndexFunc(tables, of.Equal) }

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

// appendTo appends kind, 3 reserved, count u32 and the numbers, padded.
func (t Table) appendTo(to []byte) []byte {
	kind := Float32
	switch {
	case len(t.Float64s) > 0:
		kind = Float64
	case len(t.Int64s) > 0:
		kind = Int64
	}
	to = append(to, byte(kind), 0, 0, 0)
	to = le.AppendUint32(to, uint32(len(t.Float32s)+len(t.Float64s)+len(t.Int64s)))
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
	return padTo8Bytes(to, start)
}

// tableSet is the section of tables as it was read, and which of the tables an operator uses.
type tableSet struct {
	tables    []Table
	used      []bool
	operators Operators
	made      map[operatorKey]Op
}

func readTables(r *reader, operators Operators) tableSet {
	head := r.takeBytes(8, "tables")
	if r.err != nil {
		return tableSet{}
	}
	r.checkZeros(head[4:], "tables")
	n := r.checkCount(uint64(le.Uint32(head)), MaxSinks, tableSize, "tables")
	t := tableSet{tables: make([]Table, n), used: make([]bool, n), operators: operators, made: map[operatorKey]Op{}}
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
	if kind == Float32 {
		size = 4
	}
	n := r.checkCount(uint64(le.Uint32(head[4:])), MaxBorders, size, "borders")
	b := r.takePadded(uint64(n)*size, "borders")
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
	default:
		r.failCorrupt("a table of %v", kind)
	}
}
