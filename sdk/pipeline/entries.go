package pipeline

import (
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/program"
)

// appliedHere are the operators of the document that are more than one operator of the drive, or less, so that a
// [catalogue.Chain] does not suffice for them.
var appliedHere = map[string]func(c *chain, o *Op, a location){
	"to_seconds":           func(c *chain, o *Op, a location) { c.applyTime(o, a, int96time.Seconds) },
	"to_days":              func(c *chain, o *Op, a location) { c.applyTime(o, a, int96time.Days) },
	vocabularyOperator:     applyVocabulary,
	targetEncodingOperator: applyTargetEncoding,
}

// apply adds an operator to the chain.
func (c *chain) apply(o *Op, a location) {
	c.entry = EntryOf(o.Name)
	if apply := appliedHere[o.Name]; apply != nil {
		apply(c, o, a)
		return
	}
	c.entry.Apply(&appliedOp{o, c, a})
}

// Given implements [catalogue.Arguments].
func (o *Op) Given(name string) (Value, bool) {
	a, ok := o.arg(name)
	if !ok {
		return nil, false
	}
	return a.Value, true
}

// checkedOp is an operator whose parameters are checked.
type checkedOp struct {
	*Op
	problems *problems
	location location
}

// Wrong implements [catalogue.Check].
func (c *checkedOp) Wrong(name string, kind error, format string, args ...any) {
	at := c.location
	if v, ok := c.arg(name); ok {
		at = at.key(name, firstPos(v.Pos, at.pos))
	}
	c.problems.add(at, kind, format, args...)
}

// HasConstants implements [catalogue.Check].
func (c *checkedOp) HasConstants(names ...string) bool {
	return checkConstants(c.problems, c.Op, c.location, names...)
}

// CheckZone implements [catalogue.Check].
func (c *checkedOp) CheckZone(name string) error {
	_, err := loadZone(name)
	return err
}

// appliedOp is an operator that is added to a chain.
type appliedOp struct {
	*Op
	chain    *chain
	location location
}

// Value implements [catalogue.Chain].
func (a *appliedOp) Value(name string) Value { return a.chain.value(a.Op, name) }

// Number implements [catalogue.Chain].
func (a *appliedOp) Number(name string) Number { return a.chain.number(a.Op, name) }

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
func (a *appliedOp) IsCategory() bool { return isCategory(a.chain.column.Logical) }

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
func (a *appliedOp) WholeNumber(name string, n Number) int64 {
	return a.chain.wholeNumber(a.Op, n, name, a.location)
}

// RealNumber implements [catalogue.Chain].
func (a *appliedOp) RealNumber(name string, n Number) float64 {
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
	return catalogue.Range{Low: a.chain.ids.lo, High: a.chain.ids.hi}
}

// Bounded implements [catalogue.Chain].
func (a *appliedOp) Bounded() bool { return a.chain.bounded }

// SetIDs implements [catalogue.Chain].
func (a *appliedOp) SetIDs(r catalogue.Range, bounded bool) {
	a.chain.ids, a.chain.bounded = idRange{r.Low, r.High}, bounded
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
func (a *appliedOp) Zone(name string) (IDTable, error) {
	zone, err := loadZone(name)
	if err != nil {
		return IDTable{}, err
	}
	return expandZone(zone), nil
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
	*Op
	combination *combination
	location    location
}

// Value implements [catalogue.Combination].
func (c *combinedOp) Value(name string) Value { return c.combination.chain.value(c.Op, name) }

// Number implements [catalogue.Combination].
func (c *combinedOp) Number(name string) Number { return c.combination.number(c.Op, name) }

// Word implements [catalogue.Combination].
func (c *combinedOp) Word(name string) string { return c.combination.word(c.Op, name) }

// Inputs implements [catalogue.Combination].
func (c *combinedOp) Inputs() int { return len(c.combination.inputs) }

// IsList implements [catalogue.Combination].
func (c *combinedOp) IsList(input int) bool { return c.combination.inputs[input].column.List }

// IsScored implements [catalogue.Combination].
func (c *combinedOp) IsScored(input int) bool { return c.combination.inputs[input].scored() }

// IDs implements [catalogue.Combination].
func (c *combinedOp) IDs(input int) (r catalogue.Range, bounded bool) {
	in := &c.combination.inputs[input]
	return catalogue.Range{Low: in.ids.lo, High: in.ids.hi}, in.bounded
}

// Take implements [catalogue.Combination].
func (c *combinedOp) Take(input int, as program.Kind) bool {
	all := c.combination
	if !all.settleInput(input, c.Op, as) {
		return false
	}
	of := &all.inputs[input]
	in := chain{r: all.r, column: &of.column, kind: of.kind, ops: slices.Clone(of.ops)}
	if as == program.Int64 {
		in.requireIntegers(c.Op, all.places[input])
	} else if in.requireNumbers(c.Op, all.places[input]) {
		in.convert(as)
		of.ops, of.kind = in.ops, in.kind
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
	a, _ := c.arg(name)
	at := c.location.key(c.Op.Name, c.location.pos).key(name, firstPos(a.Pos, c.location.pos))
	c.combination.refuse(at, kind, format, args...)
}

// Module implements [catalogue.Combination].
func (c *combinedOp) Module(parameter string) (digest program.ModuleDigest, ok bool) {
	name := c.Word(parameter)
	r := c.combination.r
	i := slices.IndexFunc(r.modules, func(m Module) bool { return m.Name == name })
	if i < 0 {
		c.RefuseParameter(parameter, ErrModule, "%q has no file: name it with --wasm %s=FILE, or in Python with "+
			"modules={%q: FILE}", shorten(name), shorten(name), shorten(name))
		return digest, false
	}
	module := &r.modules[i]
	if digest = module.digest(); module.Bytes != nil {
		if r.used == nil {
			r.used = program.Modules{}
		}
		r.used[digest] = module.Bytes
	}
	return digest, true
}

// Yield implements [catalogue.Combination].
func (c *combinedOp) Yield(o program.Combiner, ids catalogue.Range, bounded, neverNull bool) {
	c.combination.yield(o, idRange{ids.Low, ids.High}, bounded)
	if neverNull {
		s := c.combination.value.step
		s.nullable, s.nullableIfMalformed = false, false
	}
}
