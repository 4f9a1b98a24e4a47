package program

import (
	"fmt"
	"math"
)

// Limits of a program. They bound the memory that a drive sets aside for a program, and are far above what pipelines
// need.
const (
	MaxColumns = 1 << 16 // columns, dense columns and keys, each
	MaxSinks   = 1 << 17 // sinks over all columns
	MaxOps     = 64      // operators of a sink
	MaxName    = 4096    // bytes of a column's name
	MaxBorders = 1 << 20 // numbers of one table: borders of a Bucketize, values of a MapID
	MaxSize    = 1 << 26 // bytes of a marshalled program
	MaxTasks   = 1 << 16 // tasks of a slice
)

// textFields is the number of fields of a Criteo row: label, 13 integers, 26 ids.
const textFields = 40

// Validate checks that an engine can run the program without further checks: kinds chain from column to tensor; every
// label, dense column and key of the output is written exactly once; keys are written in order, by the columns that
// come first; list columns feed one key and nothing else; parameters are in range; counts are within the limits. The
// error wraps [ErrInvalid] and names column and operator.
func (p *Program) Validate() error {
	if err := p.validate(); err != nil {
		return fmt.Errorf("program: %w: %w", ErrInvalid, err)
	}
	return nil
}

func (p *Program) validate() error {
	switch {
	case p.Source < Parquet || p.Source > CriteoBinary:
		return fmt.Errorf("%v is no source", p.Source)
	case p.Malformed > MalformedNull:
		return fmt.Errorf("%v is no policy for malformed rows", p.Malformed)
	case p.Source != CriteoTSV && p.Malformed != MalformedFail:
		return fmt.Errorf("a policy for malformed rows with source %v", p.Source)
	case p.Source == Parquet && p.Label:
		return fmt.Errorf("a label field with source %v", p.Source)
	case len(p.Columns) == 0 || len(p.Columns) > MaxColumns:
		return fmt.Errorf("%d columns, want 1 to %d", len(p.Columns), MaxColumns)
	case p.Output.Dense > MaxColumns:
		return fmt.Errorf("%d dense columns, want at most %d", p.Output.Dense, MaxColumns)
	case p.Output.Keys > MaxColumns:
		return fmt.Errorf("%d keys, want at most %d", p.Output.Keys, MaxColumns)
	case p.Output.IDs > IDs32:
		return fmt.Errorf("%v is no type of ids", p.Output.IDs)
	case p.Output.DenseType > DenseBFloat16:
		return fmt.Errorf("%v is no type of dense", p.Output.DenseType)
	case p.Output.DenseType != DenseFloat32 && p.Output.Dense == 0:
		return fmt.Errorf("dense is %v and has no columns", p.Output.DenseType)
	case p.Output.Weights && !p.takesScores():
		return fmt.Errorf("weights, and no scores to make them of")
	}
	seen := coverage{out: p.Output, dense: make([]bool, p.Output.Dense), tables: map[tableKey]bool{}}
	graphs := 0
	for i := range p.Columns {
		c := &p.Columns[i]
		err := p.validatePart(i)
		if err == nil {
			err = p.validateColumn(c, &seen)
		}
		if err == nil && c.Part == GraphFirst {
			if graphs++; graphs > len(p.Graphs) {
				return fmt.Errorf("column %d %q: begins graph %d of %d", i, c.Name, graphs-1, len(p.Graphs))
			}
			err = p.Graphs[graphs-1].validateGraph(p.Columns[i:][:p.Parts(i)], &seen)
			if err == nil && p.Source != Parquet {
				err = p.Graphs[graphs-1].checkTextLists()
			}
		}
		if err != nil {
			return fmt.Errorf("column %d %q: %w", i, c.Name, err)
		}
	}
	if graphs < len(p.Graphs) {
		return fmt.Errorf("%d graphs, and columns for %d", len(p.Graphs), graphs)
	}
	if err := seen.checkComplete(); err != nil {
		return err
	}
	return p.validateLookups()
}

func (p *Program) validateColumn(c *Column, seen *coverage) error {
	switch {
	case len(c.Name) > MaxName: // an empty name is valid, because some writers make such columns
		return fmt.Errorf("a name of %d bytes, want at most %d", len(c.Name), MaxName)
	case c.Kind < Int64 || c.Kind > Bytes:
		return fmt.Errorf("%v is no kind", c.Kind)
	case p.Source == Parquet && c.Field != 0:
		return fmt.Errorf("field %d with source %v", c.Field, p.Source)
	case p.Source != Parquet && (c.Kind != Int64 || c.List):
		return fmt.Errorf("source %v has int64 scalars only", p.Source)
	case p.Source != Parquet && c.Absent:
		return fmt.Errorf("source %v lacks no column", p.Source)
	case c.FitsInt64 && (p.Source != Parquet || c.Kind != Int64):
		return fmt.Errorf("values of kind %v and source %v that must fit int64", c.Kind, p.Source)
	case c.validateReading(p.Source) != nil:
		return c.validateReading(p.Source)
	case c.Field >= textFields:
		return fmt.Errorf("field %d, want 0 to %d", c.Field, textFields-1)
	case p.Source == CriteoTSV && c.Field == 0 && !p.Label:
		return fmt.Errorf("rows without a label field have no field 0")
	case c.Part == MapKeys || c.Part == MapScores:
		return nil // the values have the sinks
	case c.Part == GraphFirst || c.Part == GraphNext:
		return nil // the graph has the sinks
	case len(c.Sinks) == 0:
		return fmt.Errorf("no sinks")
	case c.List && c.Part == NoPart && len(c.Sinks) > 1:
		return fmt.Errorf("a list feeds %d sinks, want 1", len(c.Sinks))
	}
	before := seen.keys
	for i := range c.Sinks {
		s := &c.Sinks[i]
		if err := seen.addSink(c, s); err != nil {
			return fmt.Errorf("sink %d (%v %d): %w", i, s.To, s.Index, err)
		}
		if err := s.validateOps(c, seen.tables); err != nil {
			return fmt.Errorf("sink %d (%v %d): %w", i, s.To, s.Index, err)
		}
	}
	return seen.noteKeys(before)
}

// noteKeys checks that a column or a graph that feeds keys is not behind one that feeds none. before is how many keys
// were fed before it.
func (v *coverage) noteKeys(before uint32) error {
	if v.keys == before {
		v.keysEnded = true
	} else if v.keysEnded {
		return fmt.Errorf("feeds a key behind a column that feeds none")
	}
	return nil
}

// coverage records which places of the output are written.
type coverage struct {
	out       Output
	label     bool
	dense     []bool
	denseSeen uint32
	keys      uint32 // keys 0..keys-1 are written
	keysEnded bool   // a column without a key was seen
	sinks     int
	tables    map[tableKey]bool
}

func (v *coverage) addSink(c *Column, s *Sink) error {
	if v.sinks++; v.sinks > MaxSinks {
		return fmt.Errorf("more than %d sinks", MaxSinks)
	}
	_, fixed := s.fixedLength()
	switch s.To {
	case ToLabel:
		switch {
		case c.List:
			return fmt.Errorf("a list cannot be a label")
		case !v.out.Label:
			return fmt.Errorf("the output has no label")
		case s.Index != 0:
			return fmt.Errorf("index %d, want 0", s.Index)
		case v.label:
			return fmt.Errorf("the label is written twice")
		}
		v.label = true
	case ToDense:
		switch {
		case c.List && !fixed:
			return fmt.Errorf("a list cannot be dense, unless fixed_length ends its operators")
		case s.Index >= v.out.Dense, s.denseColumns() > v.out.Dense-s.Index:
			return fmt.Errorf("the output has %d dense columns", v.out.Dense)
		}
		for i := range s.denseColumns() {
			if v.dense[s.Index+i] {
				return fmt.Errorf("the dense column is written twice")
			}
			v.dense[s.Index+i] = true
		}
		v.denseSeen += s.denseColumns()
	case ToSparse:
		switch {
		case s.Index >= v.out.Keys:
			return fmt.Errorf("the output has %d keys", v.out.Keys)
		case s.Index != v.keys:
			return fmt.Errorf("key %d is due: keys are written in order, each once", v.keys)
		case c.List && v.out.Fixed:
			return fmt.Errorf("a list in an output where every length is 1")
		}
		v.keys++
	default:
		return fmt.Errorf("%v is no tensor", s.To)
	}
	return nil
}

func (v *coverage) checkComplete() error {
	switch {
	case v.out.Label != v.label:
		return fmt.Errorf("no column writes the label")
	case v.denseSeen != v.out.Dense:
		return fmt.Errorf("%d of %d dense columns are written", v.denseSeen, v.out.Dense)
	case v.keys != v.out.Keys:
		return fmt.Errorf("%d of %d keys are written", v.keys, v.out.Keys)
	}
	return nil
}

func (s *Sink) validateOps(c *Column, checked map[tableKey]bool) error {
	for i, op := range s.Ops {
		if _, ok := op.(FixedLength); ok && (i < len(s.Ops)-1 || s.To != ToDense || c.Part != NoPart) {
			return fmt.Errorf("operator %d: %v: is not the last of a dense list", i, op.Unit())
		}
		if _, ok := op.(OneHot); ok && (i < len(s.Ops)-1 || s.To != ToDense) {
			return fmt.Errorf("operator %d: %v: is not the last of a dense column", i, op.Unit())
		}
	}
	kind, err := validateChain(s.Ops, c.Kind, c.List, checked)
	if err != nil {
		return err
	}
	want := Float32
	if s.To == ToSparse {
		want = Int64
	}
	switch {
	case kind != want:
		return fmt.Errorf("ends as %v, want %v", kind, want)
	case s.Refuses > RefusesNonFinite:
		return fmt.Errorf("%v is not a refusal", s.Refuses)
	case s.Refuses != RefusesNothing && s.To == ToSparse:
		return fmt.Errorf("ids, of which none is refused, refuse %v", s.Refuses)
	}
	return nil
}

// validateChain checks a chain of operators given values of a kind, and returns the kind that the chain yields.
func validateChain(ops []Op, kind Kind, list bool, checked map[tableKey]bool) (Kind, error) {
	if len(ops) > MaxOps {
		return 0, fmt.Errorf("%d operators, want at most %d", len(ops), MaxOps)
	}
	listed := false
	for i, op := range ops {
		if err := checkOp(op, kind, list, checked); err != nil {
			return 0, fmt.Errorf("operator %d: %w", i, err)
		}
		if windows, ok := op.(NGram); ok && windows.Mode == NGramRAP {
			if listed {
				return 0, fmt.Errorf("operator %d: %v: mode rap a second time in a chain", i, op.Unit())
			}
			listed = true
		}
		kind = op.Out(kind)
	}
	return kind, nil
}

// checkOp checks one operator given values of a kind.
func checkOp(op Op, in Kind, list bool, checked map[tableKey]bool) error {
	if isNil(op) {
		return fmt.Errorf("is nil")
	}
	if b, ok := op.(*Bucketize); ok {
		if err := b.checkBorders(checked); err != nil {
			return fmt.Errorf("%v: %w", op.Unit(), err)
		}
	}
	if op.Out(in) == 0 {
		return fmt.Errorf("%v does not take %v", op.Unit(), in)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%v: %w", op.Unit(), fmt.Errorf(format, args...))
	}
	switch o := op.(type) {
	case FillNull, *Bucketize, HexToInt, ZeroExtend, Convert, Float16:
	case Clamp:
		switch {
		case in == Int64 && o.IntLo > o.IntHi:
			return bad("bounds %d > %d", o.IntLo, o.IntHi)
		case in != Int64 && !(o.FloatLo <= o.FloatHi):
			return bad("bounds %v > %v", o.FloatLo, o.FloatHi)
		case in == Float32 && !(isFloat32(o.FloatLo) && isFloat32(o.FloatHi)):
			return bad("bounds %v, %v are no float32", o.FloatLo, o.FloatHi)
		}
	case Log:
		if !isFinite(float64(o.Add)) {
			return bad("add %v is not finite", o.Add)
		}
	case SigridHash:
		if o.Max <= 0 {
			return bad("max %d, want more than 0", o.Max)
		}
	case PositiveModulus:
		if o.M <= 0 {
			return bad("modulus %d, want more than 0", o.M)
		}
	case OneHot:
		if err := o.check(list); err != nil {
			return bad("%w", err)
		}
	case Lookup:
		if err := o.check(); err != nil {
			return bad("%w", err)
		}
	case HashBucket:
		if err := checkBuckets(o.Buckets); err != nil {
			return bad("%w", err)
		}
	case FirstX:
		if o.N < 0 {
			return bad("n %d, want at least 0", o.N)
		}
		if !list {
			return bad("takes a list")
		}
	case NGram:
		if o.N < 1 || o.N > MaxNGram {
			return bad("n %d, want 1 to %d", o.N, MaxNGram)
		}
		if o.Mode > NGramRAP {
			return bad("%v is no mode", o.Mode)
		}
		if !list {
			return bad("takes a list")
		}
	case HashBytes:
		if o.Function > HashFarmHash {
			return bad("%v is no hash function", o.Function)
		}
	case *LocalHour:
		if err := o.checkTable(checked); err != nil {
			return bad("%w", err)
		}
	case *MapID:
		if err := o.checkTable(checked); err != nil {
			return bad("%w", err)
		}
	case Rescale:
		if o.Multiplier < 1 || o.Divisor < 1 || o.Multiplier > 1 && o.Divisor > 1 {
			return bad("factors %d/%d, want at least 1, and one of them 1", o.Multiplier, o.Divisor)
		}
	case FixedLength:
		switch {
		case !list:
			return bad("takes a list")
		case o.Length < 1 || o.Length > MaxColumns:
			return bad("length %d, want 1 to %d", o.Length, MaxColumns)
		case !isFinite(float64(o.Pad)) || !o.Pads && math.Float32bits(o.Pad) != 0:
			return bad("pad %v", o.Pad)
		}
	case Int96Time:
		if o.To > TimeDays {
			return bad("%v is no unit of time", o.To)
		}
	case Decimal:
		switch {
		case o.Scale > MaxScale:
			return bad("scale %d, want at most %d", o.Scale, MaxScale)
		case o.To == Int64 && o.Scale > 0:
			return bad("scale %d of integers, want 0", o.Scale)
		}
	case Logit:
		if !isFinite(float64(o.Eps)) || o.Eps > 0.5 {
			return bad("eps %v, want a finite number of at most 0.5", o.Eps)
		}
	case ListSlice:
		if !list {
			return bad("takes a list")
		}
		if err := o.check(in); err != nil {
			return bad("%w", err)
		}
	case FillNaN:
		if !isFinite(o.Value) || in == Float32 && !isFloat32(o.Value) {
			return bad("value %v, want a finite number, and a float32 for float32", o.Value)
		}
	case Normalize:
		if !InNormalRange(o.Mean) || !InNormalRange(o.Deviation) || o.Deviation < 0 {
			return bad("mean %v, deviation %v: want 0 or normal float32 numbers, the deviation not below 0", o.Mean,
				o.Deviation)
		}
	case MinMax:
		if !InNormalRange(o.Min) || !InNormalRange(o.Max) || o.Max < o.Min {
			return bad("from %v to %v: want 0 or normal float32 numbers that do not descend", o.Min, o.Max)
		}
	case BoxCox:
		switch {
		case !isFinite(float64(o.Lambda1)) || !isFinite(float64(o.Lambda2)):
			return bad("lambda1 %v, lambda2 %v are not finite", o.Lambda1, o.Lambda2)
		case o.Mode > BoxCoxRAP:
			return bad("%v is no mode", o.Mode)
		case o.Mode == BoxCoxRAP && o.Lambda2 != 0:
			return bad("lambda2 %v with mode rap, which has none", o.Lambda2)
		}
	default:
		return fmt.Errorf("%T is no operator of this build", op)
	}
	return nil
}

// isNil reports whether an operator is nil, or a pointer that is nil.
func isNil(op Op) bool {
	switch o := op.(type) {
	case nil:
		return true
	case *Bucketize:
		return o == nil
	case *LocalHour:
		return o == nil
	case *MapID:
		return o == nil
	}
	return false
}

// tableKey names the memory of a list of borders. Many operators may share one list, which is then checked once.
// Otherwise the check of a small program with many operators over one large list would take long.
type tableKey struct {
	b32 *float32
	b64 *float64
	int *int64
	n   int
	use Unit // of the check, if it is not that of borders
}

func (b *Bucketize) bordersKey() tableKey {
	switch {
	case len(b.Borders32) > 0:
		return tableKey{b32: &b.Borders32[0], n: len(b.Borders32)}
	case len(b.Borders64) > 0:
		return tableKey{b64: &b.Borders64[0], n: len(b.Borders64)}
	default:
		return tableKey{int: &b.BordersInt[0], n: len(b.BordersInt)}
	}
}

func (b *Bucketize) checkBorders(checked map[tableKey]bool) error {
	lists := 0
	for _, n := range []int{len(b.Borders32), len(b.Borders64), len(b.BordersInt)} {
		if n > 0 {
			lists++
		}
		if n > MaxBorders {
			return fmt.Errorf("%d borders, want at most %d", n, MaxBorders)
		}
	}
	switch {
	case lists != 1:
		return fmt.Errorf("%d lists of borders, want 1", lists)
	case b.Side > Right:
		return fmt.Errorf("%v is no side", b.Side)
	case b.NaN > NaNError:
		return fmt.Errorf("%v is no rule for NaN", b.NaN)
	}
	key := b.bordersKey()
	if checked[key] {
		return nil
	}
	if i := firstDescent(b.Borders32); i >= 0 {
		return fmt.Errorf("border %d (%v) is not ordered", i, b.Borders32[i])
	}
	if i := firstDescent(b.Borders64); i >= 0 {
		return fmt.Errorf("border %d (%v) is not ordered", i, b.Borders64[i])
	}
	if i := firstDescent(b.BordersInt); i >= 0 {
		return fmt.Errorf("border %d (%v) is not ordered", i, b.BordersInt[i])
	}
	checked[key] = true
	return nil
}

// firstDescent returns the index of the first border that is not at least its predecessor, or is no number; -1 if none.
func firstDescent[T int64 | float32 | float64](borders []T) int {
	for i, b := range borders {
		if b != b || i > 0 && b < borders[i-1] {
			return i
		}
	}
	return -1
}

func isFloat32(x float64) bool { return math.IsInf(x, 0) || float64(float32(x)) == x }

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
