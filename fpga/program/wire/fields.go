package wire

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// noTable stands for a table that an operator does not have.
const noTable = math.MaxUint32

// wireWriter appends fields to the bytes of a program.
type wireWriter struct {
	b      []byte
	tables []program.Table
}

// Form implements [Fields].
func (*wireWriter) Form() program.Form { return program.WireForm }

// Kind implements [Fields].
func (*wireWriter) Kind() program.Kind { return 0 }

// Shows implements [Fields].
func (*wireWriter) Shows(bool) bool { return true }

// Int64 implements [Fields].
func (w *wireWriter) Int64(_ string, v *int64) { w.b = le.AppendUint64(w.b, uint64(*v)) }

// Uint32 implements [Fields].
func (w *wireWriter) Uint32(_ string, v *uint32) { w.b = le.AppendUint32(w.b, *v) }

// Uint8 implements [Fields].
func (w *wireWriter) Uint8(_ string, v *uint8) { w.b = append(w.b, *v) }

// Float32 implements [Fields].
func (w *wireWriter) Float32(_ string, v *float32) { w.b = appendFloat32(w.b, *v) }

// Float64 implements [Fields].
func (w *wireWriter) Float64(_ string, v *float64) { w.b = appendFloat64(w.b, *v) }

// Real implements [Fields].
func (w *wireWriter) Real(_ string, v *float64) { w.b = appendFloat64(w.b, *v) }

// Choice implements [Fields].
func (w *wireWriter) Choice(_ string, v *uint8, _ string) { w.b = append(w.b, *v) }

// Bool implements [Fields].
func (w *wireWriter) Bool(v *bool) { w.b = append(w.b, boolBit(*v)) }

// Reserved implements [Fields].
func (w *wireWriter) Reserved(n int) { w.b = append(w.b, make([]byte, n)...) }

// Integers implements [Fields].
func (w *wireWriter) Integers(_ string, v *[]int64, optional bool) {
	if optional && len(*v) == 0 {
		w.b = le.AppendUint32(w.b, noTable)
		return
	}
	w.table(program.Table{Int64s: *v})
}

// Texts implements [Fields].
func (w *wireWriter) Texts(_ string, v *[]string) { w.table(program.Table{Texts: *v}) }

// Borders implements [Fields].
func (w *wireWriter) Borders(_ string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	w.table(program.Table{Float32s: *f32, Float64s: *f64, Int64s: *ints})
}

// table appends where a table lies in the section of tables.
func (w *wireWriter) table(t program.Table) {
	w.b = le.AppendUint32(w.b, uint32(indexOfTable(w.tables, t)))
}

// Digest implements [Fields].
func (w *wireWriter) Digest(_ string, v *[32]byte) { w.b = append(w.b, v[:]...) }

// Kinds implements [Fields].
func (w *wireWriter) Kinds(_ string, v []program.Kind) {
	for _, k := range v {
		w.b = append(w.b, byte(k))
	}
}

// Text implements [Fields].
func (w *wireWriter) Text(_ string, v *string, size int) {
	w.b = append(w.b, byte(len(*v)), 0, 0, 0, 0, 0, 0)
	padded := make([]byte, size)
	copy(padded, *v)
	w.b = append(w.b, padded...)
}

// appendOp appends unit, version, length of the parameters, and the parameters, padded.
func appendOp(b []byte, op interface {
	Unit() program.Unit
	Fields(f program.Fields)
}, tables []program.Table) []byte {
	if program.IsNil(op) {
		return append(b, make([]byte, opSize)...)
	}
	unit := op.Unit()
	b = le.AppendUint16(b, uint16(unit))
	b = le.AppendUint16(b, unit.Version())
	b = le.AppendUint32(b, 0)
	start := len(b)
	w := wireWriter{b: b, tables: tables}
	op.Fields(&w)
	le.PutUint32(w.b[start-4:], uint32(len(w.b)-start))
	return padTo8Bytes(w.b, start)
}

// wireReader sets fields from the parameters of an operator. After its first failure every read sets zeros.
type wireReader struct {
	wireWriter // its form
	unit       program.Unit
	r          *reader // It reads the whole program, and keeps the first failure.
	b          []byte  // the parameters that are left
	tables     *tableSet
	tabled     bool // a field is a table
}

// take returns the next n bytes, which are zeros if fewer are left.
func (r *wireReader) take(n int) []byte {
	if n > len(r.b) {
		r.r.failCorrupt("%v has parameters that are %d bytes too short", r.unit, n-len(r.b))
		r.b = nil
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// Int64 implements [Fields].
func (r *wireReader) Int64(_ string, v *int64) { *v = int64(le.Uint64(r.take(8))) }

// Uint32 implements [Fields].
func (r *wireReader) Uint32(_ string, v *uint32) { *v = le.Uint32(r.take(4)) }

// Uint8 implements [Fields].
func (r *wireReader) Uint8(_ string, v *uint8) { *v = r.take(1)[0] }

// Float32 implements [Fields].
func (r *wireReader) Float32(_ string, v *float32) { *v = float32At(r.take(4)) }

// Float64 implements [Fields].
func (r *wireReader) Float64(_ string, v *float64) { *v = float64At(r.take(8)) }

// Real implements [Fields].
func (r *wireReader) Real(_ string, v *float64) { *v = float64At(r.take(8)) }

// Choice implements [Fields].
func (r *wireReader) Choice(_ string, v *uint8, _ string) { *v = r.take(1)[0] }

// Bool implements [Fields].
func (r *wireReader) Bool(v *bool) { *v = r.r.readBool(r.take(1)[0], r.unit.String()) }

// Reserved implements [Fields].
func (r *wireReader) Reserved(n int) { r.r.checkZeros(r.take(n), r.unit.String()) }

// Integers implements [Fields].
func (r *wireReader) Integers(_ string, v *[]int64, optional bool) {
	i := le.Uint32(r.take(4))
	if optional && i == noTable {
		return
	}
	table := r.table(i)
	if r.r.err == nil && len(table.Int64s) == 0 {
		r.r.failCorrupt("%v wants integers, and table %d has none", r.unit, i)
	}
	*v = table.Int64s
}

// Texts implements [Fields].
func (r *wireReader) Texts(_ string, v *[]string) {
	i := le.Uint32(r.take(4))
	table := r.table(i)
	if r.r.err == nil && len(table.Texts) == 0 {
		r.r.failCorrupt("%v wants texts, and table %d has none", r.unit, i)
	}
	*v = table.Texts
}

// Borders implements [Fields].
func (r *wireReader) Borders(_ string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	i := le.Uint32(r.take(4))
	table := r.table(i)
	if r.r.err == nil && len(table.Texts) > 0 {
		r.r.failCorrupt("%v wants numbers, and table %d has texts", r.unit, i)
	}
	*f32, *f64, *ints = table.Float32s, table.Float64s, table.Int64s
}

// table returns the table of an index and records its use.
func (r *wireReader) table(i uint32) program.Table {
	r.tabled = true
	if uint64(i) >= uint64(len(r.tables.tables)) {
		r.r.failCorrupt("%v wants table %d of %d", r.unit, i, len(r.tables.tables))
		return program.Table{}
	}
	r.tables.used[i] = true
	return r.tables.tables[i]
}

// Digest implements [Fields].
func (r *wireReader) Digest(_ string, v *[32]byte) { copy(v[:], r.take(len(v))) }

// Kinds implements [Fields].
func (r *wireReader) Kinds(_ string, v []program.Kind) {
	for i, b := range r.take(len(v)) {
		v[i] = program.Kind(b)
	}
}

// Text implements [Fields].
func (r *wireReader) Text(_ string, v *string, size int) {
	head := r.take(7)
	r.r.checkZeros(head[1:], r.unit.String())
	b := r.take(size)
	n := int(head[0])
	if n > len(b) {
		r.r.failCorrupt("%v: a name of %d bytes, want at most %d", r.unit, n, len(b))
		return
	}
	*v = string(b[:n])
	r.r.checkZeros(b[n:], r.unit.String())
}

// readParameters reads an operator up to its parameters, and finds its definition.
func readParameters(r *reader, operators program.Operators) (program.Definition, []byte) {
	head := r.takeBytes(opSize, "operator")
	if r.err != nil {
		return program.Definition{}, nil
	}
	unit, version, n := program.Unit(le.Uint16(head)), le.Uint16(head[2:]), le.Uint32(head[4:])
	d, known := operators(unit)
	if !known || version != d.Version {
		r.err = &UnknownError{Unit: unit, Version: version}
		return program.Definition{}, nil
	}
	return d, r.takePadded(uint64(n), "parameters")
}

// checkRead checks that the fields of an operator used all of its parameters.
func (r *wireReader) checkRead() {
	if len(r.b) > 0 {
		r.r.failCorrupt("%v has %d bytes of parameters that it does not have", r.unit, len(r.b))
	}
}

// operatorKey identifies an operator with tables. Equal ones become one, so that an engine can prepare it once.
type operatorKey struct {
	unit       program.Unit
	parameters string
}

// readOp reads an operator of one input.
func readOp(r *reader, tables *tableSet) program.Op {
	d, b := readParameters(r, tables.operators)
	if r.err != nil {
		return nil
	}
	if d.Read == nil {
		r.err = &UnknownError{Unit: d.Unit, Version: d.Version}
		return nil
	}
	key := operatorKey{d.Unit, string(b)}
	if op := tables.made[key]; op != nil {
		return op
	}
	fields := wireReader{unit: d.Unit, r: r, b: b, tables: tables}
	op := d.Read(&fields)
	fields.checkRead()
	if r.err != nil {
		return nil
	}
	if fields.tabled {
		tables.made[key] = op
	}
	return op
}

// readCombiner reads an operator of several inputs.
func readCombiner(r *reader, tables *tableSet) program.Combiner {
	d, b := readParameters(r, tables.operators)
	if r.err != nil {
		return nil
	}
	if d.ReadCombiner == nil {
		r.err = &UnknownError{Unit: d.Unit, Version: d.Version}
		return nil
	}
	fields := wireReader{unit: d.Unit, r: r, b: b, tables: tables}
	c := d.ReadCombiner(&fields)
	fields.checkRead()
	if r.err != nil {
		return nil
	}
	return c
}
