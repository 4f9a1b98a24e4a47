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

// Tables returns the tables of an operator, in the order in which the wire form names them.
func Tables(op Op) []Table {
	switch o := op.(type) {
	case *Bucketize:
		if o != nil {
			return []Table{o.borders()}
		}
	case *LocalHour:
		if o != nil {
			return []Table{{Int64s: o.Starts}, {Int64s: o.Offsets}}
		}
	case *MapID:
		if o != nil && len(o.Keys) > 0 {
			return []Table{{Int64s: o.Keys}, {Int64s: o.Values}}
		}
		if o != nil {
			return []Table{{Int64s: o.Values}}
		}
	}
	return nil
}

func (b *Bucketize) borders() Table {
	return Table{Float32s: b.Borders32, Float64s: b.Borders64, Int64s: b.BordersInt}
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
	tables []Table
	used   []bool
	made   map[operatorKey]Op
}

// operatorKey identifies an operator with tables. Equal ones become one, so that an engine can prepare it once.
type operatorKey struct {
	unit   Unit
	tables [2]uint32
	side   Side
	nan    NaN
	other  int64
}

// noTable stands for a table that an operator does not have.
const noTable = math.MaxUint32

// table returns the table of an index and records its use.
func (t *tableSet) table(r *reader, unit Unit, i uint32) Table {
	if uint64(i) >= uint64(len(t.tables)) {
		r.failCorrupt("%v wants table %d of %d", unit, i, len(t.tables))
		return Table{}
	}
	t.used[i] = true
	return t.tables[i]
}

// integers returns the integers of a table.
func (t *tableSet) integers(r *reader, unit Unit, i uint32) []int64 {
	table := t.table(r, unit, i)
	if r.err == nil && len(table.Int64s) == 0 {
		r.failCorrupt("%v wants integers, and table %d has none", unit, i)
	}
	return table.Int64s
}

// shared returns the operator of a key, which newOp makes if there is none.
func (t *tableSet) shared(r *reader, key operatorKey, newOp func() Op) Op {
	if o := t.made[key]; o != nil {
		return o
	}
	o := newOp()
	if r.err != nil {
		return nil
	}
	if t.made == nil {
		t.made = map[operatorKey]Op{}
	}
	t.made[key] = o
	return o
}

// readBucketize reads side u8, nan u8, 2 reserved, table u32.
func (t *tableSet) readBucketize(r *reader, b []byte) Op {
	r.checkZeros(b[2:4], "bucketize")
	key := operatorKey{unit: UnitBucketize, side: Side(b[0]), nan: NaN(b[1]), tables: [2]uint32{le.Uint32(b[4:])}}
	return t.shared(r, key, func() Op {
		borders := t.table(r, key.unit, key.tables[0])
		return &Bucketize{Side: key.side, NaN: key.nan, Borders32: borders.Float32s, Borders64: borders.Float64s,
			BordersInt: borders.Int64s}
	})
}

// readLocalHour reads starts u32, offsets u32.
func (t *tableSet) readLocalHour(r *reader, b []byte) Op {
	key := operatorKey{unit: UnitLocalHour, tables: [2]uint32{le.Uint32(b), le.Uint32(b[4:])}}
	return t.shared(r, key, func() Op {
		return &LocalHour{Starts: t.integers(r, key.unit, key.tables[0]), Offsets: t.integers(r, key.unit, key.tables[1])}
	})
}

// readMapID reads keys u32, values u32, default i64.
func (t *tableSet) readMapID(r *reader, b []byte) Op {
	key := operatorKey{unit: UnitMapID, tables: [2]uint32{le.Uint32(b), le.Uint32(b[4:])}, other: int64(le.Uint64(b[8:]))}
	return t.shared(r, key, func() Op {
		o := &MapID{Default: key.other}
		if key.tables[0] != noTable {
			o.Keys = t.integers(r, key.unit, key.tables[0])
		}
		o.Values = t.integers(r, key.unit, key.tables[1])
		return o
	})
}

func readTables(r *reader) tableSet {
	head := r.takeBytes(8, "tables")
	if r.err != nil {
		return tableSet{}
	}
	r.checkZeros(head[4:], "tables")
	n := r.checkCount(uint64(le.Uint32(head)), MaxSinks, tableSize, "tables")
	t := tableSet{tables: make([]Table, n), used: make([]bool, n)}
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
