package resolve

import (
	"encoding/hex"

	"github.com/millrace/millrace/fpga/program"
)

// canonicalFields writes the parameters of an operator, whose values are of a kind, as the members of a JSON object.
type canonicalFields struct {
	c     *canonical
	kind  program.Kind
	count int // members that are written
}

// member begins a member.
func (f *canonicalFields) member(name string) *canonical {
	f.c.comma(f.count).str(`"` + name + `":`)
	f.count++
	return f.c
}

// Form implements [program.Fields].
func (*canonicalFields) Form() program.Form { return program.CanonicalForm }

// Kind implements [program.Fields].
func (f *canonicalFields) Kind() program.Kind { return f.kind }

// Shows implements [program.Fields].
func (*canonicalFields) Shows(condition bool) bool { return condition }

// Int64 implements [program.Fields].
func (f *canonicalFields) Int64(name string, v *int64) { f.member(name).int(*v) }

// Uint32 implements [program.Fields].
func (f *canonicalFields) Uint32(name string, v *uint32) { f.member(name).int(int64(*v)) }

// Uint8 implements [program.Fields].
func (f *canonicalFields) Uint8(name string, v *uint8) { f.member(name).int(int64(*v)) }

// Float32 implements [program.Fields].
func (f *canonicalFields) Float32(name string, v *float32) {
	f.member(name).float32(*v)
}

// Float64 implements [program.Fields].
func (f *canonicalFields) Float64(name string, v *float64) {
	f.member(name).float64(*v)
}

// Real implements [program.Fields].
func (f *canonicalFields) Real(name string, v *float64) {
	if f.kind == program.Float32 {
		f.member(name).float32(float32(*v))
		return
	}
	f.Float64(name, v)
}

// Choice implements [program.Fields].
func (f *canonicalFields) Choice(name string, _ *uint8, word string) {
	f.member(name).str(`"` + word + `"`)
}

// Bool implements [program.Fields].
func (*canonicalFields) Bool(*bool) {}

// Reserved implements [program.Fields].
func (*canonicalFields) Reserved(int) {}

// Integers implements [program.Fields].
func (f *canonicalFields) Integers(name string, v *[]int64, optional bool) {
	if !optional || len(*v) > 0 {
		f.member(name).table(program.Table{Int64s: *v})
	}
}

// Texts implements [program.Fields].
func (f *canonicalFields) Texts(name string, v *[]string) {
	f.member(name).table(program.Table{Texts: *v})
}

// Borders implements [program.Fields].
func (f *canonicalFields) Borders(name string, f32 *[]float32, f64 *[]float64, ints *[]int64) {
	f.member(name).table(program.Table{Float32s: *f32, Float64s: *f64, Int64s: *ints})
}

// Digest implements [program.Fields].
func (f *canonicalFields) Digest(name string, v *[32]byte) {
	f.member(name).str(`"` + hex.EncodeToString(v[:]) + `"`)
}

// Kinds implements [program.Fields].
func (f *canonicalFields) Kinds(name string, v []program.Kind) {
	f.member(name).str(`[`)
	for i, k := range v {
		if k != 0 {
			f.c.comma(i).str(`"` + k.String() + `"`)
		}
	}
	f.c.str(`]`)
}

// Text implements [program.Fields].
func (f *canonicalFields) Text(name string, v *string, _ int) { f.member(name).text(*v) }
