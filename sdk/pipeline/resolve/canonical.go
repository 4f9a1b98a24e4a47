package resolve

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// CanonicalVersion begins every canonical form. It changes if the same form comes to mean other mini-batches.
const CanonicalVersion = 2

// Canonical returns the pipeline's part of a job's identity: JSON without spaces, keys in a fixed order, patterns
// expanded, defaults filled in, parameters in the type in which they are used, real numbers and tables as the
// hexadecimal digits of their bits, every table once, under the key borders. Conversions, which follow from the types,
// are left out, and so are the pipeline's name and its batch, which a job's identity holds beside it.
func (r *Resolved) Canonical() []byte {
	c := canonical{}
	c.str(`{"pipeline":`).int(CanonicalVersion).str(`,"ids":"` + r.IDs.String() + `","fixed":`).bool(r.Fixed())
	if r.DenseType != program.DenseFloat32 { // float32 is left out, as before there was another type
		c.str(`,"dense_type":"` + r.DenseType.String() + `"`)
	}
	if r.Source == program.CriteoTSV {
		c.str(`,"malformed":"` + r.Malformed.String() + `"`)
	}
	if r.Label != nil {
		c.str(`,"label":`).feature(r.Label)
	}
	c.features("dense", r.Dense)
	c.features("keys", r.Keys)
	if r.Filter != nil {
		c.str(`,"filter":`).filter(r.Filter)
	}
	c.stepsAndTables()
	return c.b
}

// stepsAndTables ends a canonical form with the steps and tables that it named.
func (c *canonical) stepsAndTables() {
	if len(c.steps.list) > 0 {
		c.str(`,"steps":[`)
		for i, s := range c.steps.list {
			c.comma(i).str(s)
		}
		c.str(`]`)
	}
	c.str(`,"borders":[`)
	c.bordersOfTables()
	c.str(`]}`)
}

// Digest returns the SHA-256 of the canonical form.
func (r *Resolved) Digest() [sha256.Size]byte { return sha256.Sum256(r.Canonical()) }

// canonical writes a canonical form.
type canonical struct {
	b      []byte
	tables []program.Table // in the order in which they were met
	steps  stepSet         // steps of several inputs, each behind those that it takes
}

func (c *canonical) str(s string) *canonical {
	c.b = append(c.b, s...)
	return c
}

func (c *canonical) int(n int64) *canonical {
	c.b = strconv.AppendInt(c.b, n, 10)
	return c
}

func (c *canonical) bool(v bool) *canonical {
	c.b = strconv.AppendBool(c.b, v)
	return c
}

func (c *canonical) comma(i int) *canonical {
	if i > 0 {
		c.b = append(c.b, ',')
	}
	return c
}

// text writes a JSON string. It escapes " and \, and characters below space as \u00xx.
func (c *canonical) text(s string) *canonical {
	c.b = append(c.b, '"')
	for i := range len(s) {
		switch {
		case s[i] == '"' || s[i] == '\\':
			c.b = append(c.b, '\\', s[i])
		case s[i] < ' ':
			c.b = fmt.Appendf(c.b, `\u%04x`, s[i])
		default:
			c.b = append(c.b, s[i])
		}
	}
	c.b = append(c.b, '"')
	return c
}

// bordersOfTables writes the lists of borders that operators named.
func (c *canonical) bordersOfTables() {
	for i, t := range c.tables {
		c.comma(i).borders(t)
	}
}

func (c *canonical) features(name string, list []Feature) {
	c.str(`,"` + name + `":[`)
	for i := range list {
		c.comma(i).feature(&list[i])
	}
	c.str(`]`)
}

// mapKey writes the key of a feature of a map.
func (c *canonical) mapKey(m *columntypes.Map, key int64, text string) *canonical {
	if m.TextKeys {
		return c.text(text)
	}
	return c.int(key)
}

func (c *canonical) feature(f *Feature) {
	source := c.source(&f.Column, f.Step)
	c.str(`{"name":`).text(f.Name).str(`,` + source)
	if f.Column.Map.IsMap() {
		c.str(`,"key":`).mapKey(&f.Column.Map, f.Key, f.TextKey).str(`,"scores":`).bool(f.Scored())
	} else if f.hasScores() {
		c.str(`,"scores":`).bool(f.Scored())
	}
	if f.Set > 0 {
		c.str(`,"set":`).int(int64(f.Set))
	}
	c.str(`,"kind":"` + kindText(&f.Column) + `","list":`).bool(f.Column.List).str(`,"ops":[`)
	n := c.ops(f.Column.Kind, f.Ops)
	if l := f.lookup; l != nil {
		c.comma(n).str(`{"vocabulary":{"sha256":"` + l.digest.String() + `","unknown":"` + l.unknown.String() + `"}}`)
	}
	if e := f.encoding; e != nil {
		c.comma(n)
		c.encoding(e)
	}
	c.str(`]}`)
}

// kindText names the kind of a column's values, and their unit if partitions have several units.
func kindText(c *columntypes.Column) string {
	if c.Reading == program.ReadSeconds {
		return c.Kind.String() + " seconds"
	}
	return c.Kind.String()
}

// chain writes the type of a value and the operators that it passes.
func (c *canonical) chain(of *columntypes.Column, ops []program.Op) *canonical {
	c.str(`"kind":"` + kindText(of) + `","list":`).bool(of.List).str(`,"ops":[`)
	c.ops(of.Kind, ops)
	return c.str(`]`)
}

// ops writes operators but conversions, and returns how many it wrote.
func (c *canonical) ops(kind program.Kind, ops []program.Op) int {
	n := 0
	for _, op := range ops {
		if _, ok := op.(convert.Op); !ok {
			c.comma(n).op(op, kind)
			n++
		}
		kind = op.Out(kind)
	}
	return n
}

// op writes an operator whose values are of a kind.
func (c *canonical) op(op program.Op, kind program.Kind) {
	c.str(`{"` + op.Unit().String() + `":{`)
	op.Fields(&canonicalFields{c: c, kind: kind})
	c.str(`}}`)
}

// float32 writes a real number as its bits.
func (c *canonical) float32(x float32) {
	c.str(fmt.Sprintf(`"%08x"`, math.Float32bits(x)))
}

// float64 writes a real number as its bits.
func (c *canonical) float64(x float64) {
	c.str(fmt.Sprintf(`"%016x"`, math.Float64bits(x)))
}

// table writes the index of a table in tables, and appends the table if it is not there. Tables are compared by their
// bits and not by their memory.
func (c *canonical) table(of program.Table) {
	i := slices.IndexFunc(c.tables, of.Equal)
	if i < 0 {
		i = len(c.tables)
		c.tables = append(c.tables, of)
	}
	c.int(int64(i))
}

func (c *canonical) borders(t program.Table) {
	switch {
	case len(t.Float32s) > 0:
		c.str(`{"float32":"`)
		for _, x := range t.Float32s {
			c.b = fmt.Appendf(c.b, "%08x", math.Float32bits(x))
		}
	case len(t.Float64s) > 0:
		c.str(`{"float64":"`)
		for _, x := range t.Float64s {
			c.b = fmt.Appendf(c.b, "%016x", math.Float64bits(x))
		}
	case len(t.Texts) > 0:
		c.str(`{"texts":[`)
		for i, text := range t.Texts {
			c.comma(i).text(text)
		}
		c.str(`]}`)
		return
	default:
		c.str(`{"int64":"`)
		for _, x := range t.Int64s {
			c.b = fmt.Appendf(c.b, "%016x", uint64(x))
		}
	}
	c.str(`"}`)
}
