package program

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// noTable stands for a table that an operator does not have.
const noTable = math.MaxUint32

// wireWriter appends fields to the bytes of a program.
type wireWriter struct {
	b      []byte
	tables []Table
}

// Form implements [Fields].
func (*wireWriter) Form() Form { return WireForm }

// Kind implements [Fields].
func (*wireWriter) Kind() Kind { return 0 }

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
	w.table(Table{Int64s: *v})
}

// Texts implements [Fields].
func (w *wireWriter) Texts(_ string, v *[]string) { w.table(Table{Texts: *v}) }

// Borders implements [Fields].
func (w *wireWriter) Borders(_ string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	w.table(Table{Float32s: *f32, Float64s: *f64, Int64s: *ints})
}

// table appends where a table lies in the section of tables.
func (w *wireWriter) table(t Table) {
	w.b = le.AppendUint32(w.b, uint32(indexOfTable(w.tables, t)))
}

// Digest implements [Fields].
func (w *wireWriter) Digest(_ string, v *[32]byte) { w.b = append(w.b, v[:]...) }

// Kinds implements [Fields].
func (w *wireWriter) Kinds(_ string, v []Kind) {
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
	Unit() Unit
	Fields(f Fields)
}, tables []Table) []byte {
	if isNil(op) {
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
	unit       Unit
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
func (r *wireReader) table(i uint32) Table {
	r.tabled = true
	if uint64(i) >= uint64(len(r.tables.tables)) {
		r.r.failCorrupt("%v wants table %d of %d", r.unit, i, len(r.tables.tables))
		return Table{}
	}
	r.tables.used[i] = true
	return r.tables.tables[i]
}

// Digest implements [Fields].
func (r *wireReader) Digest(_ string, v *[32]byte) { copy(v[:], r.take(len(v))) }

// Kinds implements [Fields].
func (r *wireReader) Kinds(_ string, v []Kind) {
	for i, b := range r.take(len(v)) {
		v[i] = Kind(b)
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
func readParameters(r *reader, operators Operators) (Definition, []byte) {
	head := r.takeBytes(opSize, "operator")
	if r.err != nil {
		return Definition{}, nil
	}
	unit, version, n := Unit(le.Uint16(head)), le.Uint16(head[2:]), le.Uint32(head[4:])
	d, known := operators(unit)
	if !known || version != d.Version {
		r.err = &UnknownError{Unit: unit, Version: version}
		return Definition{}, nil
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
	unit       Unit
	parameters string
}

// readOp reads an operator of one input.
func readOp(r *reader, tables *tableSet) Op {
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
func readCombiner(r *reader, tables *tableSet) Combiner {
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

// tableCollector collects the tables of an operator, in the order in which the wire form names them.
type tableCollector struct {
	wireWriter
	found []Table
}

// Integers implements [Fields].
func (c *tableCollector) Integers(_ string, v *[]int64, optional bool) {
	if !optional || len(*v) > 0 {
		c.found = append(c.found, Table{Int64s: *v})
	}
}

// Texts implements [Fields].
func (c *tableCollector) Texts(_ string, v *[]string) { c.found = append(c.found, Table{Texts: *v}) }

// Borders implements [Fields].
func (c *tableCollector) Borders(_ string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	c.found = append(c.found, Table{Float32s: *f32, Float64s: *f64, Int64s: *ints})
}

// Tables returns the tables of an operator, in the order in which the wire form names them.
func Tables(op Op) []Table {
	if isNil(op) {
		return nil
	}
	var c tableCollector
	op.Fields(&c)
	return c.found
}

// textWriter writes fields for people.
type textWriter struct {
	fields []textField
	kind   Kind
}

// textField is the name of a field and the text of its value.
type textField struct{ name, value string }

// operatorText returns an operator of values of a kind as people read it: each parameter with its name, which a single
// parameter does without.
func operatorText(op interface {
	Unit() Unit
	Fields(f Fields)
}, kind Kind) string {
	if isNil(op) {
		return "nil"
	}
	w := textWriter{kind: kind}
	op.Fields(&w)
	var b strings.Builder
	b.WriteString(op.Unit().String())
	for _, f := range w.fields {
		if len(w.fields) > 1 {
			b.WriteString(" " + f.name)
		}
		b.WriteString(" " + f.value)
	}
	return b.String()
}

func (w *textWriter) write(name, value string) { w.fields = append(w.fields, textField{name, value}) }

// Form implements [Fields].
func (*textWriter) Form() Form { return TextForm }

// Kind implements [Fields].
func (w *textWriter) Kind() Kind { return w.kind }

// Shows implements [Fields].
func (*textWriter) Shows(condition bool) bool { return condition }

// Int64 implements [Fields].
func (w *textWriter) Int64(name string, v *int64) {
	switch *v {
	case math.MinInt64:
		w.write(name, "min")
	case math.MaxInt64:
		w.write(name, "max")
	default:
		w.write(name, strconv.FormatInt(*v, 10))
	}
}

// Uint32 implements [Fields].
func (w *textWriter) Uint32(name string, v *uint32) { w.write(name, fmt.Sprint(*v)) }

// Uint8 implements [Fields].
func (w *textWriter) Uint8(name string, v *uint8) { w.write(name, fmt.Sprint(*v)) }

// Float32 implements [Fields].
func (w *textWriter) Float32(name string, v *float32) { w.write(name, fmt.Sprint(*v)) }

// Float64 implements [Fields].
func (w *textWriter) Float64(name string, v *float64) { w.write(name, fmt.Sprint(*v)) }

// Real implements [Fields].
func (w *textWriter) Real(name string, v *float64) { w.write(name, fmt.Sprint(*v)) }

// Choice implements [Fields].
func (w *textWriter) Choice(name string, _ *uint8, word string) { w.write(name, word) }

// Bool implements [Fields].
func (*textWriter) Bool(*bool) {}

// Reserved implements [Fields].
func (*textWriter) Reserved(int) {}

// Integers implements [Fields].
func (w *textWriter) Integers(name string, v *[]int64, optional bool) {
	if !optional || len(*v) > 0 {
		w.write(name, shortenBorders(*v))
	}
}

// Texts implements [Fields].
func (w *textWriter) Texts(name string, v *[]string) {
	quoted := make([]string, len(*v))
	for i, text := range *v {
		quoted[i] = strconv.Quote(text)
	}
	w.write(name, shortenBorders(quoted))
}

// Borders implements [Fields].
func (w *textWriter) Borders(name string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	switch {
	case len(*f32) > 0:
		w.write(name, "float32 "+shortenBorders(*f32))
	case len(*f64) > 0:
		w.write(name, "float64 "+shortenBorders(*f64))
	default:
		w.write(name, "int64 "+shortenBorders(*ints))
	}
}

// Digest implements [Fields].
func (w *textWriter) Digest(name string, v *[32]byte) { w.write(name, fmt.Sprintf("%x", v[:6])) }

// Kinds implements [Fields].
func (w *textWriter) Kinds(name string, v []Kind) {
	var names []string
	for _, k := range v {
		if k != 0 {
			names = append(names, k.String())
		}
	}
	w.write(name, strings.Join(names, ","))
}

// Text implements [Fields].
func (w *textWriter) Text(name string, v *string, size int) {
	w.write(name, fmt.Sprintf("%.*q", size, *v))
}

// shortenBorders renders up to four borders, or the number of borders with the first two and the last.
func shortenBorders[T any](v []T) string {
	if len(v) <= 4 {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%d[%v %v .. %v]", len(v), v[0], v[1], v[len(v)-1])
}
