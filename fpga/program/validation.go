package program

import (
	"fmt"
	"math"
	"slices"
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
		return fmt.Errorf("%v is not a source", p.Source)
	case p.Malformed > MalformedNull:
		return fmt.Errorf("%v is not a policy for malformed rows", p.Malformed)
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
		return fmt.Errorf("%v is not a type of ids", p.Output.IDs)
	case p.Output.DenseType > DenseBFloat16:
		return fmt.Errorf("%v is not a type of dense", p.Output.DenseType)
	case p.Output.DenseType != DenseFloat32 && p.Output.Dense == 0:
		return fmt.Errorf("dense is %v and has no columns", p.Output.DenseType)
	case p.Output.Weights && !p.takesScores():
		return fmt.Errorf("weights, and no scores to make them of")
	}
	seen := coverage{out: p.Output, dense: make([]bool, p.Output.Dense), tables: checkedLists{}}
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
		return fmt.Errorf("%v is not a kind", c.Kind)
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
	tables    checkedLists
}

func (v *coverage) addSink(c *Column, s *Sink) error {
	if v.sinks++; v.sinks > MaxSinks {
		return fmt.Errorf("more than %d sinks", MaxSinks)
	}
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
		case c.List && !s.EndsLists():
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
		return fmt.Errorf("%v is not a tensor", s.To)
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

func (s *Sink) validateOps(c *Column, checked checkedLists) error {
	for i, op := range s.Ops {
		end, ok := op.(denseEnd)
		switch {
		case !ok || IsNil(op):
		case end.EndsLists() && (i < len(s.Ops)-1 || s.To != ToDense || c.Part != NoPart && c.Part != GraphFirst):
			return fmt.Errorf("operator %d: %v: is not the last of a dense list", i, op.Unit())
		case i < len(s.Ops)-1 || s.To != ToDense:
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
func validateChain(ops []Op, kind Kind, list bool, checked checkedLists) (Kind, error) {
	if len(ops) > MaxOps {
		return 0, fmt.Errorf("%d operators, want at most %d", len(ops), MaxOps)
	}
	var single []string
	for i, op := range ops {
		if err := checkOp(op, Input{kind, list, checked}); err != nil {
			return 0, fmt.Errorf("operator %d: %w", i, err)
		}
		if once, ok := op.(singleton); ok && once.OncePerChain() != "" {
			what := op.Unit().String() + ": " + once.OncePerChain()
			if slices.Contains(single, what) {
				return 0, fmt.Errorf("operator %d: %s a second time in a chain", i, what)
			}
			single = append(single, what)
		}
		kind = op.Out(kind)
	}
	return kind, nil
}

// CheckAscent checks that numbers ascend, unless that has been checked of the same memory.
func CheckAscent(in Input, numbers []int64, what string) error {
	return CheckOnce(in, "ascent", numbers, func() error {
		for i := 1; i < len(numbers); i++ {
			if numbers[i] <= numbers[i-1] {
				return fmt.Errorf("%s %d (%d) is not above the one before", what, i, numbers[i])
			}
		}
		return nil
	})
}

// CheckBuckets checks a number of buckets.
func CheckBuckets(n int64) error {
	if n < 1 {
		return fmt.Errorf("%d buckets, want more than 0", n)
	}
	return nil
}

// InNormalRange reports whether a constant is 0 or in the range of normal float32 numbers.
func InNormalRange(x float64) bool {
	return x == 0 || math.Abs(x) >= 0x1p-126 && math.Abs(x) <= math.MaxFloat32
}

// IsFloat32 reports whether a number is exactly representable as a float32, or infinite.
func IsFloat32(x float64) bool { return math.IsInf(x, 0) || float64(float32(x)) == x }

// IsFinite reports whether a number is neither infinite nor a NaN.
func IsFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
