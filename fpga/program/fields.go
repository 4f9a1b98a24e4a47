package program

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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
	if IsNil(op) {
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
