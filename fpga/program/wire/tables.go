package wire

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

// tableCollector collects the tables of an operator, in the order in which the wire form names them.
type tableCollector struct {
	wireWriter
	found []program.Table
}

// Integers implements [Fields].
func (c *tableCollector) Integers(_ string, v *[]int64, optional bool) {
	if !optional || len(*v) > 0 {
		c.found = append(c.found, program.Table{Int64s: *v})
	}
}

// Texts implements [Fields].
func (c *tableCollector) Texts(_ string, v *[]string) {
	c.found = append(c.found, program.Table{Texts: *v})
}

// Borders implements [Fields].
func (c *tableCollector) Borders(_ string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	c.found = append(c.found, program.Table{Float32s: *f32, Float64s: *f64, Int64s: *ints})
}

// Tables returns the tables of an operator, in the order in which the wire form names them.
func Tables(op program.Op) []program.Table {
	if program.IsNil(op) {
		return nil
	}
	var c tableCollector
	op.Fields(&c)
	return c.found
}

// indexOfTable returns the index of a table, or -1.
func indexOfTable(tables []program.Table, of program.Table) int {
	return slices.IndexFunc(tables, of.Equal)
}

// collectTables returns the tables of a program, in order of first use, each once.
func collectTables(p *program.Program) []program.Table {
	var tables []program.Table
	p.ForEachOp(func(op program.Op) {
		for _, t := range Tables(op) {
			if indexOfTable(tables, t) < 0 {
				tables = append(tables, t)
			}
		}
	})
	return tables
}

// appendTable appends kind, 3 reserved, count u32 and the numbers, padded; of texts their lengths, padded, and then the
// texts, padded.
func appendTable(t program.Table, to []byte) []byte {
	kind := program.Float32
	switch {
	case len(t.Float64s) > 0:
		kind = program.Float64
	case len(t.Int64s) > 0:
		kind = program.Int64
	case len(t.Texts) > 0:
		kind = program.Bytes
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
	tables    []program.Table
	used      []bool
	operators program.Operators
	made      map[operatorKey]program.Op
}

// newTableSet makes a set of n tables that are still to be read.
func newTableSet(n int, operators program.Operators) tableSet {
	return tableSet{tables: make([]program.Table, n), used: make([]bool, n), operators: operators,
		made: map[operatorKey]program.Op{}}
}

func readTables(r *reader, operators program.Operators) tableSet {
	head := r.takeBytes(8, "tables")
	if r.err != nil {
		return newTableSet(0, operators)
	}
	r.checkZeros(head[4:], "tables")
	n := r.checkCount(uint64(le.Uint32(head)), program.MaxSinks, tableSize, "tables")
	t := newTableSet(n, operators)
	for i := range t.tables {
		readTable(&t.tables[i], r)
	}
	return t
}

func readTable(t *program.Table, r *reader) {
	head := r.takeBytes(tableSize, "table")
	if r.err != nil {
		return
	}
	r.checkZeros(head[1:4], "table")
	kind := program.Kind(head[0])
	size := uint64(8)
	if kind == program.Float32 || kind == program.Bytes {
		size = 4
	}
	most, what := uint64(program.MaxBorders), "borders"
	if kind == program.Bytes {
		most, what = program.MaxTexts, "texts"
	}
	n := r.checkCount(uint64(le.Uint32(head[4:])), most, size, what)
	b := r.takePadded(uint64(n)*size, what)
	if r.err != nil {
		return
	}
	switch kind {
	case program.Float32:
		t.Float32s = make([]float32, n)
		for i := range t.Float32s {
			t.Float32s[i] = float32At(b[4*i:])
		}
	case program.Float64:
		t.Float64s = make([]float64, n)
		for i := range t.Float64s {
			t.Float64s[i] = float64At(b[8*i:])
		}
	case program.Int64:
		t.Int64s = make([]int64, n)
		for i := range t.Int64s {
			t.Int64s[i] = int64(le.Uint64(b[8*i:]))
		}
	case program.Bytes:
		readTableTexts(t, r, b)
	default:
		r.failCorrupt("a table of %v", kind)
	}
}

// readTableTexts reads the texts of a table, given the bytes of their lengths.
func readTableTexts(t *program.Table, r *reader, lengths []byte) {
	size := uint64(0)
	for i := 0; i < len(lengths); i += 4 {
		n := le.Uint32(lengths[i:])
		if n > program.MaxTextBytes {
			r.failCorrupt("a text of %d bytes, want at most %d", n, program.MaxTextBytes)
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
