package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/text"
)

// compiled is a program made ready to run: parameters checked, tables built. It is immutable and shared.
type compiled struct {
	source  program.Source
	out     program.Output
	columns []column
	text    text.Options
	fields  [textFields]bool // text: fields that some column reads
	kept    int              // text: how many of them
}

// textFields is the number of fields of a Criteo row: label, 13 dense, 26 sparse.
const textFields = 1 + text.Dense + text.Sparse

// column is one column and what its values run through.
type column struct {
	name  string
	field uint16
	kind  program.Kind
	list  bool
	keys  int // sparse sinks
	part  program.Part
	plan  *mapPlan // of a map: what is made of it, the same for all its columns
	// passes are the runs over the column's rows, each with the sinks that one feeds. There is one, but where values
	// are appended and the column feeds several keys, whose values lie one behind the other, there is one a key.
	passes [][]sink
}

// whole tells whether a task of the column must cover all rows of the mini-batch: the values of its second key are
// appended behind all of its first.
func (c *column) whole() bool { return len(c.passes) > 1 }

// sink is a chain of operators and the tensor it ends in.
type sink struct {
	to    program.Dest
	index uint32
	steps []step
}

// step is one operator made ready. Which fields are used is the unit's affair.
type step struct {
	unit   program.Unit
	in     program.Kind
	to     program.Kind // convert
	i0, i1 int64        // fill; bounds; n
	f0, f1 float64      // fill; bounds
	add    float32
	lo, hi float32 // log: what its values are clamped to first
	joined bool    // clamp: the log behind it does it
	zero   bool    // fill_null, the first of its chain, with the 0 that the decoder leaves in null slots: nothing to do
	guard  bool    // bucketize: a NaN is an error, so null slots must not hold one
	hash   *sigridhash.Hasher
	mod    *positivemodulus.Modulus
	table  *bucketize.Table
}

// compile prepares a validated program for an engine with these units.
func compile(p *program.Program, units []program.UnitRef) (*compiled, error) {
	for _, want := range p.Units() {
		if !slices.Contains(units, want) {
			return nil, fmt.Errorf("compile program: unit %v version %d is not in the image", want.Unit, want.Version)
		}
	}
	c := &compiled{source: p.Source, out: p.Output, columns: make([]column, len(p.Columns))}
	c.text.LabelAbsent = !p.Label
	switch p.Malformed {
	case program.MalformedDrop:
		c.text.Policy = text.Drop
	case program.MalformedNull:
		c.text.Policy = text.Null
	}
	tables := make(map[*program.Bucketize]*bucketize.Table)
	for i := range p.Columns {
		from, to := &p.Columns[i], &c.columns[i]
		*to = column{name: from.Name, field: from.Field, kind: from.Kind, list: from.List}
		if to.part = from.Part; to.part == program.MapKeys {
			to.plan = &mapPlan{parts: p.Parts(i)}
		} else if to.part != program.NoPart {
			to.plan = c.columns[i-1].plan
		}
		if p.Source != program.Parquet && !c.fields[from.Field] {
			c.fields[from.Field] = true
			c.kept++
		}
		sinks := make([]sink, len(from.Sinks))
		for j := range from.Sinks {
			s, err := compileSink(&from.Sinks[j], from.Kind, tables)
			if err != nil {
				return nil, fmt.Errorf("compile program: column %q, sink %d: %w", from.Name, j, err)
			}
			sinks[j] = s
			if s.to == program.ToSparse {
				to.keys++
			}
		}
		switch to.part {
		case program.NoPart:
			to.passes = split(sinks, p.Output.Fixed)
		case program.MapValues:
			to.plan.take(from, sinks)
		}
	}
	return c, nil
}

// split parts sinks into passes; see column.passes.
func split(sinks []sink, fixed bool) [][]sink {
	passes := [][]sink{nil}
	keys := 0
	for _, s := range sinks {
		at := 0
		if s.to == program.ToSparse {
			if keys > 0 && !fixed {
				passes = append(passes, nil)
				at = len(passes) - 1
			}
			keys++
		}
		passes[at] = append(passes[at], s)
	}
	for _, p := range passes {
		// The last sink may work in the block itself; it should be one that would have to copy it otherwise.
		slices.SortStableFunc(p, func(a, b sink) int { return a.inPlace() - b.inPlace() })
	}
	return passes
}

// inPlace is 1 if the chain begins with an operator that works in place, else 0.
func (s sink) inPlace() int {
	for i := range s.steps {
		switch s.steps[i].unit {
		case program.UnitFillNull:
			if s.steps[i].zero {
				continue
			}
			return 1
		case program.UnitClamp, program.UnitZeroExtend:
			if s.steps[i].joined {
				continue
			}
			return 1
		}
		return 0
	}
	return 0
}

func compileSink(s *program.Sink, kind program.Kind, tables map[*program.Bucketize]*bucketize.Table) (sink, error) {
	to := sink{to: s.To, index: s.Index, steps: make([]step, len(s.Ops))}
	for i, op := range s.Ops {
		st, err := compileOp(op, kind, tables)
		if err != nil {
			return sink{}, fmt.Errorf("operator %d: %w", i, err)
		}
		st.zero = st.zero && i == 0
		to.steps[i] = st
		kind = op.Out(kind)
	}
	joinClamps(to.steps)
	return to, nil
}

// joinClamps has a log do the work of the clamp before it, which saves a pass and often a copy.
func joinClamps(steps []step) {
	for i := range steps[:max(0, len(steps)-1)] {
		s, next := &steps[i], &steps[i+1]
		lo, hi := float32(s.f0), float32(s.f1)
		if s.unit == program.UnitClamp && s.in == program.Float32 && next.unit == program.UnitLog && lo <= hi {
			s.joined, next.lo, next.hi = true, lo, hi
		}
	}
}

func compileOp(op program.Op, in program.Kind, tables map[*program.Bucketize]*bucketize.Table) (step, error) {
	st := step{unit: op.Unit(), in: in}
	var err error
	switch o := op.(type) {
	case program.FillNull:
		st.i0, st.f0 = o.Int, o.Float
		st.zero = in == program.Int64 && o.Int == 0 || in != program.Int64 && math.Float64bits(o.Float) == 0
	case program.Clamp:
		st.i0, st.i1, st.f0, st.f1 = o.IntLo, o.IntHi, o.FloatLo, o.FloatHi
	case program.Log:
		st.add, st.lo, st.hi = o.Add, float32(math.Inf(-1)), float32(math.Inf(1))
	case *program.Bucketize:
		st.guard = o.NaN == program.NaNError && in != program.Int64
		if st.table = tables[o]; st.table == nil {
			if st.table, err = bucketize.New(borders(o)); err == nil {
				tables[o] = st.table
			}
		}
	case program.SigridHash:
		st.hash, err = sigridhash.New(sigridhash.Params{Salt: o.Salt, Max: o.Max})
	case program.PositiveModulus:
		st.mod, err = positivemodulus.New(o.M)
	case program.FirstX:
		st.i0 = o.N
	case program.Convert:
		st.to = o.To
	case program.HexToInt, program.ZeroExtend:
	default:
		err = fmt.Errorf("%T is no operator of this engine", op)
	}
	return st, err
}

// borders turns the program's form of Bucketize into the unit's.
func borders(b *program.Bucketize) bucketize.Params {
	p := bucketize.Params{Borders: b.Borders32, Borders64: b.Borders64, BordersI64: b.BordersInt}
	switch {
	case len(b.Borders64) > 0:
		p.Compare = bucketize.CompareFloat64
	case len(b.BordersInt) > 0:
		p.Compare = bucketize.CompareInt64
	}
	if b.Side == program.Right {
		p.Side = bucketize.SideRight
	}
	switch b.NaN {
	case program.NaNFirst:
		p.NaN = bucketize.NaNFirst
	case program.NaNLast:
		p.NaN = bucketize.NaNLast
	case program.NaNError:
		p.NaN = bucketize.NaNFail
	}
	return p
}
