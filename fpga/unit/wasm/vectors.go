package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Limits of vectors.
const (
	MaxVectors         = 1 << 20 // bytes of a document
	maxVectorRows      = 1 << 14 // rows of a document
	maxVectorFaults    = 20      // rows that are reported
	maxVectorFunctions = 64      // functions of a document
)

// Vectors are known answers of functions.
type Vectors struct {
	Functions []FunctionVectors `json:"functions"`
}

// FunctionVectors are known answers of one function.
type FunctionVectors struct {
	Function string       `json:"function"`
	In       []string     `json:"in"`  // kinds: int64, float32, float64
	Out      string       `json:"out"` // kind
	Rows     []VectorsRow `json:"rows"`
}

// VectorsRow is the known answer for a row. A value is a JSON number, null, or a text: nan, inf, -inf, or the bits of a
// float as 0x7fc00000.
type VectorsRow struct {
	In   []json.RawMessage `json:"in"`
	Out  json.RawMessage   `json:"out,omitempty"`
	Trap bool              `json:"trap"` // the function traps, and there is no value
}

// VectorsError says that a document of vectors cannot be used.
type VectorsError struct{ Detail string }

func (e *VectorsError) Error() string { return "vectors: " + e.Detail }

func vectorsError(format string, args ...any) error {
	return &VectorsError{fmt.Sprintf(format, args...)}
}

// Checked is the outcome of vectors for a function.
type Checked struct {
	Function  string   `json:"function"`
	Signature string   `json:"signature"`
	Rows      int      `json:"rows"`
	Wrong     int      `json:"wrong_rows"`
	Faults    []string `json:"faults"` // Faults are those of the first rows that are wrong.
}

// ParseVectors reads a document of vectors.
func ParseVectors(b []byte) (*Vectors, error) {
	if len(b) > MaxVectors {
		return nil, vectorsError("%d bytes, want at most %d", len(b), MaxVectors)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	v := &Vectors{}
	if err := d.Decode(v); err != nil {
		return nil, vectorsError("%v", err)
	}
	if d.More() {
		return nil, vectorsError("something follows the document")
	}
	if n := len(v.Functions); n == 0 || n > maxVectorFunctions {
		return nil, vectorsError("%d functions, want 1 to %d", n, maxVectorFunctions)
	}
	rows := 0
	for i := range v.Functions {
		f := &v.Functions[i]
		signature, err := f.signature()
		if err != nil {
			return nil, vectorsError("function %.64q: %v", f.Function, err)
		}
		if rows += len(f.Rows); len(f.Rows) == 0 || rows > maxVectorRows {
			return nil, vectorsError("function %.64q: %d rows, want 1 to %d in all", f.Function, len(f.Rows), maxVectorRows)
		}
		for k := range f.Rows {
			if _, err := f.Rows[k].read(signature); err != nil {
				return nil, vectorsError("function %.64q: row %d: %v", f.Function, k, err)
			}
		}
	}
	return v, nil
}

// signature returns the function's signature.
func (f *FunctionVectors) signature() (s format.Signature, err error) {
	for _, name := range f.In {
		s.In = append(s.In, kindNamed(name))
	}
	s.Out = kindNamed(f.Out)
	return s, s.Check()
}

func kindNamed(name string) format.Kind {
	for _, k := range []format.Kind{format.Int64, format.Float32, format.Float64} {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// vectorRow is a row that was read: bits of values, nil where one is null.
type vectorRow struct {
	in   []*uint64
	out  *uint64
	trap bool
}

// Answer is the known answer for a row: the bits of its values, nil where one is null.
type Answer struct {
	In   []*uint64
	Out  *uint64 // nil too where the function traps
	Trap bool
}

// Answers returns the function's signature and its rows.
func (f *FunctionVectors) Answers() (of format.Signature, list []Answer, err error) {
	if of, err = f.signature(); err != nil {
		return of, nil, vectorsError("function %.64q: %v", f.Function, err)
	}
	for k := range f.Rows {
		row, err := f.Rows[k].read(of)
		if err != nil {
			return of, nil, vectorsError("function %.64q: row %d: %v", f.Function, k, err)
		}
		list = append(list, Answer{In: row.in, Out: row.out, Trap: row.trap})
	}
	return of, list, nil
}

// read reads a row.
func (r *VectorsRow) read(of format.Signature) (row vectorRow, err error) {
	if len(r.In) != len(of.In) {
		return row, fmt.Errorf("%d inputs, want %d", len(r.In), len(of.In))
	}
	null := false
	for i, text := range r.In {
		bits, err := readValue(text, of.In[i])
		if err != nil {
			return row, fmt.Errorf("input %d: %w", i, err)
		}
		null = null || bits == nil
		row.in = append(row.in, bits)
	}
	switch row.trap = r.Trap; {
	case r.Trap && (len(r.Out) > 0 || null):
		return row, errors.New("it traps, and has a null or a value")
	case r.Trap:
		return row, nil
	case len(r.Out) == 0:
		return row, errors.New("want out, or trap: true")
	}
	if row.out, err = readValue(r.Out, of.Out); err == nil && (row.out == nil) != null {
		err = errors.New("the value is null if, and only if, an input is")
	}
	return row, err
}

// readValue returns the bits of a value, or nil of null.
func readValue(text json.RawMessage, k format.Kind) (*uint64, error) {
	s := strings.TrimSpace(string(text))
	if s == "null" {
		return nil, nil
	}
	size := int(8 * k.Bytes())
	var bits uint64
	if k == format.Int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40s, want a whole number or null", s)
		}
		bits = uint64(n)
		return &bits, nil
	}
	quoted := strings.HasPrefix(s, `"`)
	s = strings.Trim(s, `"`)
	if digits, ok := strings.CutPrefix(s, "0x"); ok && quoted {
		n, err := strconv.ParseUint(digits, 16, size)
		if err != nil {
			return nil, fmt.Errorf("%.40s, want %d bits in hexadecimal", s, size)
		}
		return &n, nil
	}
	switch s {
	case "nan", "inf", "-inf":
		if !quoted {
			return nil, fmt.Errorf("%s without quotes", s)
		}
	default:
		if quoted {
			return nil, fmt.Errorf("%.40q, want a number, null, nan, inf, -inf or bits as 0x7fc00000", s)
		}
	}
	x, err := strconv.ParseFloat(s, size)
	if err != nil {
		return nil, fmt.Errorf("%.40s, want a number that fits %v", s, k)
	}
	if bits = math.Float64bits(x); k == format.Float32 {
		bits = uint64(math.Float32bits(float32(x)))
	}
	if x != x { // the canonical NaN
		if bits = 0x7ff8 << 48; k == format.Float32 {
			bits = 0x7fc00000
		}
	}
	return &bits, nil
}

// Test computes the functions of a module for their vectors' rows, as engines do, and compares.
func (v *Vectors) Test(module []byte, o Options) ([]Checked, error) {
	var list []Checked
	for i := range v.Functions {
		c, err := v.Functions[i].test(module, o)
		if err != nil {
			return nil, fmt.Errorf("function %.64q: %w", v.Functions[i].Function, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// test computes one function. Each row is run alone first, so that a row that traps does not hide others; then all rows
// that do not trap are run together.
func (f *FunctionVectors) test(module []byte, o Options) (Checked, error) {
	signature, err := f.signature()
	if err != nil {
		return Checked{}, err
	}
	function, err := Compile(context.Background(), module, f.Function, signature, o)
	if err != nil {
		return Checked{}, err
	}
	c := Checked{Function: f.Function, Signature: signature.String(), Rows: len(f.Rows), Faults: []string{}}
	wrong := func(row int, format string, args ...any) {
		if c.Wrong++; len(c.Faults) < maxVectorFaults {
			c.Faults = append(c.Faults, fmt.Sprintf("row %d: ", row)+fmt.Sprintf(format, args...))
		}
	}
	whole := newVectorColumns(signature)
	var together []int
	var lone []string // the values of these rows, run alone
	for k := range f.Rows {
		row, err := f.Rows[k].read(signature)
		if err != nil {
			return Checked{}, err
		}
		alone := newVectorColumns(signature)
		alone.add(row)
		err = alone.run(function)
		var trap *format.TrapError
		switch trapped := errors.As(err, &trap); {
		case err != nil && !trapped:
			return Checked{}, err
		case trapped && !row.trap:
			wrong(k, "the function traps: %s", trap.Reason)
		case !trapped && row.trap:
			wrong(k, "%s, want a trap", alone.text(0))
		case !trapped:
			if !alone.equals(0, row) {
				wrong(k, "%s, want %s", alone.text(0), valueText(row.out, signature.Out))
			}
			whole.add(row)
			together, lone = append(together, k), append(lone, alone.text(0))
		}
	}
	if err := whole.run(function); err != nil {
		return Checked{}, err
	}
	for i, k := range together {
		if got := whole.text(i); got != lone[i] {
			wrong(k, "%s alone and %s among other rows", lone[i], got)
		}
	}
	return c, nil
}

// vectorColumns are rows as columns.
type vectorColumns struct {
	of    format.Signature
	in    []Column
	out   Column
	valid []byte
}

func newVectorColumns(of format.Signature) *vectorColumns {
	return &vectorColumns{of: of, in: make([]Column, len(of.In))}
}

// add adds a row.
func (c *vectorColumns) add(row vectorRow) {
	valid := byte(1)
	for i, bits := range row.in {
		if bits == nil {
			valid, bits = 0, new(uint64)
		}
		c.in[i].append(c.of.In[i], *bits)
	}
	c.out.append(c.of.Out, 0)
	c.valid = append(c.valid, valid)
}

func (c *vectorColumns) run(f *Function) error { return f.Run(c.out, c.in, len(c.valid), c.valid) }

// equals reports whether the value of a row is that of the vector.
func (c *vectorColumns) equals(i int, row vectorRow) bool {
	return c.text(i) == valueText(row.out, c.of.Out)
}

// text renders the value of a row with its bits.
func (c *vectorColumns) text(i int) string {
	if c.valid[i] == 0 {
		return "null"
	}
	bits := c.out.bits(i)
	return valueText(&bits, c.of.Out)
}

// valueText renders a value with its bits.
func valueText(bits *uint64, k format.Kind) string {
	switch {
	case bits == nil:
		return "null"
	case k == format.Float32:
		return fmt.Sprintf("%v (0x%08x)", math.Float32frombits(uint32(*bits)), *bits)
	case k == format.Float64:
		return fmt.Sprintf("%v (0x%016x)", math.Float64frombits(*bits), *bits)
	}
	return strconv.FormatInt(int64(*bits), 10)
}

// append appends a value.
func (c *Column) append(k format.Kind, bits uint64) {
	switch k {
	case format.Int64:
		c.Int64s = append(c.Int64s, int64(bits))
	case format.Float32:
		c.Float32s = append(c.Float32s, math.Float32frombits(uint32(bits)))
	case format.Float64:
		c.Float64s = append(c.Float64s, math.Float64frombits(bits))
	}
}

// bits returns the bits of a value.
func (c Column) bits(i int) uint64 {
	switch {
	case c.Float32s != nil:
		return uint64(math.Float32bits(c.Float32s[i]))
	case c.Float64s != nil:
		return math.Float64bits(c.Float64s[i])
	}
	return uint64(c.Int64s[i])
}
