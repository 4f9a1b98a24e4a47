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
var appliedHere = map[string]func(c *chain, o *pipeline.Op, a problem.Place){
	"to_seconds": func(c *chain, o *pipeline.Op, a problem.Place) {
		c.applyTime(o, a,
			int96time.Seconds)
	},
	"to_days":                       func(c *chain, o *pipeline.Op, a problem.Place) { c.applyTime(o, a, int96time.Days) },
	pipeline.VocabularyOperator:     applyVocabulary,
	pipeline.TargetEncodingOperator: applyTargetEncoding,
}

// apply adds an operator to the chain.
func (c *chain) apply(o *pipeline.Op, a problem.Place) {
	c.entry = pipeline.EntryOf(o.Name)
	if apply := appliedHere[o.Name]; apply != nil {
		apply(c, o, a)
		return
	}
	c.entry.Apply(&appliedOp{o, c, a})
}

// appliedOp is an operator that is added to a chain.
type appliedOp struct {
	*pipeline.Op
	chain    *chain
	location problem.Place
}

// Value implements [catalogue.Chain].
func (a *appliedOp) Value(name string) pipeline.Value { return a.chain.value(a.Op, name) }

// Number implements [catalogue.Chain].
func (a *appliedOp) Number(name string) pipeline.Number { return a.chain.number(a.Op, name) }

// Word implements [catalogue.Chain].
func (a *appliedOp) Word(name string) string { return a.chain.word(a.Op, name) }

// Kind implements [catalogue.Chain].
func (a *appliedOp) Kind() program.Kind { return a.chain.kind }

// IsUnsigned implements [catalogue.Chain].
func (a *appliedOp) IsUnsigned() bool { return a.chain.isUnsigned() }

// IsList implements [catalogue.Chain].
func (a *appliedOp) IsList() bool { return a.chain.column.List }

// IsDenseList implements [catalogue.Chain].
func (a *appliedOp) IsDenseList() bool { return a.chain.denseList }

// IsMap implements [catalogue.Chain].
func (a *appliedOp) IsMap() bool { return a.chain.column.Map.IsMap() }

// FromText implements [catalogue.Chain].
func (a *appliedOp) FromText() bool { return a.chain.column.Source > program.Parquet }

// Annotation implements [catalogue.Chain].
func (a *appliedOp) Annotation() string { return a.chain.annotation() }

// Logical implements [catalogue.Chain].
func (a *appliedOp) Logical() string { return a.chain.column.Logical }

// IsCategory implements [catalogue.Chain].
func (a *appliedOp) IsCategory() bool { return columntypes.IsCategory(a.chain.column.Logical) }

// DescribeBytes implements [catalogue.Chain].
func (a *appliedOp) DescribeBytes() string { return a.chain.describeBytes() }

// Scored implements [catalogue.Chain].
func (a *appliedOp) Scored() bool { return a.chain.from.scored() }

// Ops implements [catalogue.Chain].
func (a *appliedOp) Ops() []program.Op { return a.chain.ops }

// Refuse implements [catalogue.Chain].
func (a *appliedOp) Refuse(kind error, format string, args ...any) {
	a.chain.refuse(a.location, kind, format, args...)
}

// RequireText implements [catalogue.Chain].
func (a *appliedOp) RequireText() bool { return a.chain.requireText(a.Op, a.location) }

// RequireNumbers implements [catalogue.Chain].
func (a *appliedOp) RequireNumbers() bool { return a.chain.requireNumbers(a.Op, a.location) }

// RequireIntegers implements [catalogue.Chain].
func (a *appliedOp) RequireIntegers() bool { return a.chain.requireIntegers(a.Op, a.location) }

// RequireReals implements [catalogue.Chain].
func (a *appliedOp) RequireReals() bool { return a.chain.toReals(a.Op, a.location) }

// WholeNumber implements [catalogue.Chain].
func (a *appliedOp) WholeNumber(name string, n pipeline.Number) int64 {
	return a.chain.wholeNumber(a.Op, n, name, a.location)
}

// RealNumber implements [catalogue.Chain].
func (a *appliedOp) RealNumber(name string, n pipeline.Number) float64 {
	return a.chain.realNumber(a.Op, n, name, a.location)
}

// Convert implements [catalogue.Chain].
func (a *appliedOp) Convert(to program.Kind) { a.chain.convert(to) }

// Append implements [catalogue.Chain].
func (a *appliedOp) Append(op program.Op) {
	a.chain.appendOp(op)
	if kind := op.Out(a.chain.kind); kind != 0 {
		a.chain.kind = kind
	}
}

// IDs implements [catalogue.Chain].
func (a *appliedOp) IDs() catalogue.Range {
	return a.chain.ids
}

// Bounded implements [catalogue.Chain].
func (a *appliedOp) Bounded() bool { return a.chain.bounded }

// SetIDs implements [catalogue.Chain].
func (a *appliedOp) SetIDs(r catalogue.Range, bounded bool) {
	a.chain.ids, a.chain.bounded = r, bounded
}

// FillsNulls implements [catalogue.Chain].
func (a *appliedOp) FillsNulls() { a.chain.nulls = nullness{fills: true} }

// MakesNulls implements [catalogue.Chain].
func (a *appliedOp) MakesNulls() { a.chain.nulls.makes = true }

// BeginStep implements [catalogue.Chain].
func (a *appliedOp) BeginStep(o program.Combiner) { a.chain.beginStep(o) }

// Statistics implements [catalogue.Chain].
func (a *appliedOp) Statistics() *catalogue.Statistics { return a.chain.statisticsOf(a.Op, a.location) }

// Zone implements [catalogue.Chain].
func (a *appliedOp) Zone(name string) (pipeline.IDTable, error) {
	zone, err := pipeline.LoadZone(name)
	if err != nil {
		return pipeline.IDTable{}, err
	}
	return pipeline.ExpandZone(zone), nil
}

// ReadVaried implements [catalogue.Chain].
func (a *appliedOp) ReadVaried(to program.Kind) bool { return a.chain.readVaried(a.Op, to, a.location) }

// DecimalScale implements [catalogue.Chain].
func (a *appliedOp) DecimalScale() (uint8, bool) { return a.chain.requireDecimal(a.Op, a.location) }

// Shared implements [catalogue.Chain].
func (a *appliedOp) Shared(key any, build func() (program.Op, error)) (program.Op, error) {
	return a.chain.r.shared(key, build)
}

// CountNumbers implements [catalogue.Chain].
func (a *appliedOp) CountNumbers(key any, n int) error { return a.chain.r.countNumbers(key, n) }

// combinedOp is an operator that takes inputs together.
type combinedOp struct {
	*pipeline.Op
	combination *combination
	location    problem.Place
}

// Value implements [catalogue.Combination].
func (c *combinedOp) Value(name string) pipeline.Value { return c.combination.chain.value(c.Op, name) }

// Number implements [catalogue.Combination].
func (c *combinedOp) Number(name string) pipeline.Number { return c.combination.number(c.Op, name) }

// Word implements [catalogue.Combination].
func (c *combinedOp) Word(name string) string { return c.combination.word(c.Op, name) }

// Inputs implements [catalogue.Combination].
func (c *combinedOp) Inputs() int { return len(c.combination.inputs) }

// IsList implements [catalogue.Combination].
func (c *combinedOp) IsList(input int) bool { return c.combination.inputs[input].Column.List }

// IsScored implements [catalogue.Combination].
func (c *combinedOp) IsScored(input int) bool { return c.combination.inputs[input].scored() }

// IDs implements [catalogue.Combination].
func (c *combinedOp) IDs(input int) (r catalogue.Range, bounded bool) {
	in := &c.combination.inputs[input]
	return in.ids, in.bounded
}

// Take implements [catalogue.Combination].
func (c *combinedOp) Take(input int, as program.Kind) bool {
	all := c.combination
	if !all.settleInput(input, c.Op, as) {
		return false
	}
	of := &all.inputs[input]
	in := chain{r: all.r, column: &of.Column, kind: of.kind, ops: slices.Clone(of.Ops)}
	if as == program.Int64 {
		in.requireIntegers(c.Op, all.places[input])
	} else if in.requireNumbers(c.Op, all.places[input]) {
		in.convert(as)
		of.Ops, of.kind = in.ops, in.kind
	}
	all.failed = all.failed || in.failed
	return !in.failed
}

// Refuse implements [catalogue.Combination].
func (c *combinedOp) Refuse(input int, kind error, format string, args ...any) {
	at := c.location
	if input >= 0 {
		at = c.combination.places[input]
	}
	c.combination.refuse(at, kind, format, args...)
}

// RefuseParameter implements [catalogue.Combination].
func (c *combinedOp) RefuseParameter(name string, kind error, format string, args ...any) {
	a, _ := c.Argument(name)
	at := c.location.Key(c.Op.Name, c.location.Pos).Key(name, problem.FirstPos(a.Pos, c.location.Pos))
	c.combination.refuse(at, kind, format, args...)
}

// Module implements [catalogue.Combination].
func (c *combinedOp) Module(parameter string) (digest program.ModuleDigest, ok bool) {
	name := c.Word(parameter)
	r := c.combination.r
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
func (c *combinedOp) Yield(o program.Combiner, ids catalogue.Range, bounded, neverNull bool) {
	c.combination.yield(o, ids, bounded)
	if neverNull {
		s := c.combination.value.Step
		s.nullable, s.nullableIfMalformed = false, false
	}
}
