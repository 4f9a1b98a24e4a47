package resolve

import (
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// appliedHere are the operators of the document that are more than one operator of the drive, or less, so that a
// [catalogue.Chain] does not suffice for them.
var appliedHere = map[string]func(c *chain){
	"to_seconds":                    func(c *chain) { c.applyTime(int96time.Seconds) },
	"to_days":                       func(c *chain) { c.applyTime(int96time.Days) },
	pipeline.VocabularyOperator:     applyVocabulary,
	pipeline.TargetEncodingOperator: applyTargetEncoding,
}

// apply adds an operator to the chain.
func (c *chain) apply(o *pipeline.Op, at problem.Place) {
	c.Op, c.at = o, at
	if apply := appliedHere[o.Name]; apply != nil {
		apply(c)
		return
	}
	pipeline.EntryOf(o.Name).Apply(c)
}

// The methods below and those of chain.go that have capital letters are [catalogue.Chain].

// Kind implements [catalogue.Chain].
func (c *chain) Kind() program.Kind { return c.kind }

// IsList implements [catalogue.Chain].
func (c *chain) IsList() bool { return c.column.List }

// IsDenseList implements [catalogue.Chain].
func (c *chain) IsDenseList() bool { return c.denseList }

// IsMap implements [catalogue.Chain].
func (c *chain) IsMap() bool { return c.column.Map.IsMap() }

// FromText implements [catalogue.Chain].
func (c *chain) FromText() bool { return c.column.Source > program.Parquet }

// Logical implements [catalogue.Chain].
func (c *chain) Logical() string { return c.column.Logical }

// IsCategory implements [catalogue.Chain].
func (c *chain) IsCategory() bool { return columntypes.IsCategory(c.column.Logical) }

// Scored implements [catalogue.Chain].
func (c *chain) Scored() bool { return c.from.scored() }

// Ops implements [catalogue.Chain].
func (c *chain) Ops() []program.Op { return c.ops }

// Append implements [catalogue.Chain].
func (c *chain) Append(op program.Op) {
	c.appendOp(op)
	if kind := op.Out(c.kind); kind != 0 {
		c.kind = kind
	}
}

// IDs implements [catalogue.Chain].
func (c *chain) IDs() catalogue.Range { return c.ids }

// Bounded implements [catalogue.Chain].
func (c *chain) Bounded() bool { return c.bounded }

// SetIDs implements [catalogue.Chain].
func (c *chain) SetIDs(r catalogue.Range, bounded bool) { c.ids, c.bounded = r, bounded }

// FillsNulls implements [catalogue.Chain].
func (c *chain) FillsNulls() { c.nulls = nullness{fills: true} }

// MakesNulls implements [catalogue.Chain].
func (c *chain) MakesNulls() { c.nulls.makes = true }

// Zone implements [catalogue.Chain].
func (c *chain) Zone(name string) (pipeline.IDTable, error) {
	zone, err := pipeline.LoadZone(name)
	if err != nil {
		return pipeline.IDTable{}, err
	}
	return pipeline.ExpandZone(zone), nil
}

// Shared implements [catalogue.Chain].
func (c *chain) Shared(key any, build func() (program.Op, error)) (program.Op, error) {
	return c.r.shared(key, build)
}

// CountNumbers implements [catalogue.Chain].
func (c *chain) CountNumbers(key any, n int) error { return c.r.countNumbers(key, n) }

// Inputs implements [catalogue.Combination].
func (c *combination) Inputs() int { return len(c.inputs) }

// IsList implements [catalogue.Combination].
func (c *combination) IsList(input int) bool { return c.inputs[input].Column.List }

// IsScored implements [catalogue.Combination].
func (c *combination) IsScored(input int) bool { return c.inputs[input].scored() }

// IDs implements [catalogue.Combination].
func (c *combination) IDs(input int) (r catalogue.Range, bounded bool) {
	in := &c.inputs[input]
	return in.ids, in.bounded
}

// Take implements [catalogue.Combination].
func (c *combination) Take(input int, as program.Kind) bool {
	if !c.settleInput(input, as) {
		return false
	}
	of := &c.inputs[input]
	in := chain{Op: c.Op, at: c.places[input], r: c.r, column: &of.Column, kind: of.kind, ops: slices.Clone(of.Ops)}
	if as == program.Int64 {
		in.RequireIntegers()
	} else if in.RequireNumbers() {
		in.Convert(as)
		of.Ops, of.kind = in.ops, in.kind
	}
	c.failed = c.failed || in.failed
	return !in.failed
}

// Refuse implements [catalogue.Combination].
func (c *combination) Refuse(input int, kind error, format string, args ...any) {
	at := c.at
	if input >= 0 {
		at = c.places[input]
	}
	c.refuse(at, kind, format, args...)
}

// RefuseParameter implements [catalogue.Combination].
func (c *combination) RefuseParameter(name string, kind error, format string, args ...any) {
	a, _ := c.Argument(name)
	at := c.at.Key(c.Name, c.at.Pos).Key(name, a.Pos)
	c.refuse(at, kind, format, args...)
}

// Module implements [catalogue.Combination].
func (c *combination) Module(parameter string) (digest program.ModuleDigest, ok bool) {
	name := c.Word(parameter)
	r := c.r
	i := slices.IndexFunc(r.modules, func(m pipeline.Module) bool { return m.Name == name })
	if i < 0 {
		c.RefuseParameter(parameter, problem.ErrModule, "%q has no file: name it with --wasm %s=FILE, or in Python with "+
			"modules={%q: FILE}", problem.Shorten(name), problem.Shorten(name), problem.Shorten(name))
		return digest, false
	}
	module := &r.modules[i]
	if digest = module.Sum(); module.Bytes != nil {
		if r.used == nil {
			r.used = program.Modules{}
		}
		r.used[digest] = module.Bytes
	}
	return digest, true
}

// Yield implements [catalogue.Combination].
func (c *combination) Yield(o program.Combiner, ids catalogue.Range, bounded, neverNull bool) {
	c.yield(o, ids, bounded)
	if neverNull {
		s := c.value.Step
		s.nullable, s.nullableIfMalformed = false, false
	}
}
