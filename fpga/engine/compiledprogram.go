package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/boxcox"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/hashcross"
	"github.com/millrace/millrace/fpga/unit/int96"
	"github.com/millrace/millrace/fpga/unit/listslice"
	"github.com/millrace/millrace/fpga/unit/localhour"
	"github.com/millrace/millrace/fpga/unit/logit"
	"github.com/millrace/millrace/fpga/unit/mapid"
	"github.com/millrace/millrace/fpga/unit/minmax"
	"github.com/millrace/millrace/fpga/unit/normalize"
	"github.com/millrace/millrace/fpga/unit/onehot"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/rescale"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/text"
)

// compiledProgram is a program made ready to run: its parameters are checked and its tables built. It is immutable and
// shared by all executors.
type compiledProgram struct {
	source      program.Source
	output      program.Output
	columns     []column
	textOptions text.Options
	usedFields  [textFields]bool // text: the fields that columns read
	fieldCount  int              // text: the number of used fields
	lookups     []lookupTable
	wasmBytes   uint64 // that functions of modules hold for each thread
}

// textFields is the number of fields of a Criteo row: label, 13 dense, 26 sparse.
const textFields = 1 + text.Dense + text.Sparse

// column is one column and the steps and sinks of its values.
type column struct {
	name       string
	field      uint16
	kind       program.Kind
	list       bool
	sparseKeys int // number of sinks that feed keys
	part       program.Part
	leafPart   program.Part // which leaf of a map it is, also in a graph
	absent     bool         // partitions may lack the column
	fitsInt64  bool         // a uint64 of 2^63 or more fails the slice
	reading    program.Reading
	group      groupPlan // the plan of the column's map or graph, if it belongs to one
	// passes are the sinks of each pass over the column's rows. There is one pass, unless the column feeds several keys
	// whose values are appended: all values of a key lie behind those of the key before, so each key takes a pass of
	// its own.
	passes [][]sink
}

// needsAllRows reports whether a task of the column must cover all rows of the mini-batch. It must where the values of
// a second key are appended behind all values of the first.
func (c *column) needsAllRows() bool { return len(c.passes) > 1 }

// sink is a chain of operators and the tensor it ends in.
type sink struct {
	tensor  program.Dest
	index   uint32
	steps   []step
	refuses program.Refusal
}

// step is one operator made ready. The unit says which of the parameters it uses.
type step struct {
	unit       program.Unit
	inputKind  program.Kind
	outputKind program.Kind // convert, decimal

	fillInt             int64   // fill_null of integers
	fillFloat           float64 // fill_null and fill_nan of floats
	lowInt, highInt     int64   // clamp of integers
	lowFloat, highFloat float64 // clamp of floats
	keepFirst           int64   // firstx: elements of a list
	ngramSize           int64   // ngram: ids of a window
	listsWindows        bool    // ngram: lists the ids of all windows
	hashFunction        hashbytes.Function
	multiplier, divisor int64      // rescale
	timeUnit            int96.Unit // int96_time
	scale               uint8      // decimal
	fixedLength         program.FixedLength
	logAdd              float32
	logit               logit.Range
	boxCox              *boxcox.Transform
	normalize           *normalize.Transform
	slice               program.ListSlice
	sliceLength         int64 // list_slice: of padded lists
	minMax              *minmax.Transform
	logLow, logHigh     float32 // log: the bounds to which it clamps its values first
	hasher              *sigridhash.Hasher
	modulus             *positivemodulus.Modulus
	bucketHasher        hashcross.Hasher
	lookup              *lookup
	classes             onehot.Classes
	classCount          uint32 // onehot
	table               *bucketize.Table
	zone                *localhour.Zone
	mapKeys             *mapid.Index // map_id; nil: the table is dense
	mapValues           []int64
	mapDefault          int64

	mergedIntoLog bool // clamp: the log behind it clamps
	fillsZeros    bool // fill_null with 0, first in its chain: the decoder has left 0 where values are null
	rejectsNaN    bool // bucketize: a NaN is an error, so none may stand where a value is null
}

// compileProgram prepares a validated program for an engine with these units and modules, unless ctx ends before.
func compileProgram(ctx context.Context, p *program.Program, units []program.UnitRef,
	modules program.Modules) (*compiledProgram, error) {
	for _, want := range p.Units() {
		if !slices.Contains(units, want) && want.Unit == program.UnitWasm {
			return nil, fmt.Errorf("compile program: unit %v version %d is not in the image, and module %v needs it: "+
				"activate an image that holds the module", want.Unit, want.Version, p.WasmModules()[0])
		}
		if !slices.Contains(units, want) {
			return nil, fmt.Errorf("compile program: unit %v version %d is not in the image", want.Unit, want.Version)
		}
	}
	c := &compiledProgram{source: p.Source, output: p.Output, columns: make([]column, len(p.Columns))}
	c.textOptions.LabelAbsent = !p.Label
	switch p.Malformed {
	case program.MalformedDrop:
		c.textOptions.Policy = text.Drop
	case program.MalformedNull:
		c.textOptions.Policy = text.Null
	}
	tables := newPreparedTables()
	tables.ctx, tables.modules = ctx, modules
	var err error
	if c.lookups, err = compileLookupTables(p.LookupTables); err != nil {
		return nil, fmt.Errorf("compile program: %w", err)
	}
	graphs := 0
	for i := range p.Columns {
		from, to := &p.Columns[i], &c.columns[i]
		*to = column{name: from.Name, field: from.Field, kind: from.Kind, list: from.List, absent: from.Absent,
			fitsInt64: from.FitsInt64, reading: from.Reading}
		to.leafPart = from.LeafPart()
		switch to.part = from.Part; {
		case to.part == program.MapKeys:
			to.group = &mapPlan{columnGroup: columnGroup{leaves: p.Parts(i), valuesLeaf: 1}}
		case to.part == program.GraphFirst:
			plan, err := compileGraph(&p.Graphs[graphs], p.Columns[i:][:p.Parts(i)], tables)
			if err != nil {
				return nil, fmt.Errorf("compile program: graph of column %q: %w", from.Name, err)
			}
			to.group = plan
			graphs++
		case to.part != program.NoPart:
			to.group = c.columns[i-1].group
		}
		if p.Source != program.Parquet && !c.usedFields[from.Field] {
			c.usedFields[from.Field] = true
			c.fieldCount++
		}
		sinks := make([]sink, len(from.Sinks))
		for j := range from.Sinks {
			s, err := compileSink(&from.Sinks[j], from.Kind, tables)
			if err != nil {
				return nil, fmt.Errorf("compile program: column %q, sink %d: %w", from.Name, j, err)
			}
			sinks[j] = s
			if s.tensor == program.ToSparse {
				to.sparseKeys++
			}
		}
		switch to.part {
		case program.NoPart:
			to.passes = groupPasses(sinks, p.Output.Fixed)
		case program.MapValues:
			to.group.(*mapPlan).addSinks(from, sinks, p.Columns[i-1].Kind == program.Bytes)
		}
	}
	c.wasmBytes = tables.wasm.Bytes()
	return c, nil
}

// groupPasses divides sinks into passes; see column.passes.
func groupPasses(sinks []sink, fixed bool) [][]sink {
	passes := [][]sink{nil}
	keys := 0
	for _, s := range sinks {
		at := 0
		if s.tensor == program.ToSparse {
			if keys > 0 && !fixed {
				passes = append(passes, nil)
				at = len(passes) - 1
			}
			keys++
		}
		passes[at] = append(passes[at], s)
	}
	for _, p := range passes {
		// The last sink may work in the block itself. A sink that would otherwise copy the block should be last.
		slices.SortStableFunc(p, func(a, b sink) int { return a.inPlaceOrder() - b.inPlaceOrder() })
	}
	return passes
}

// inPlaceOrder returns 1 if the chain begins with an operator that works in place, else 0.
func (s sink) inPlaceOrder() int {
	for i := range s.steps {
		switch s.steps[i].unit {
		case program.UnitFillNull:
			if s.steps[i].fillsZeros {
				continue
			}
			return 1
		case program.UnitClamp, program.UnitZeroExtend, program.UnitFillNaN:
			if s.steps[i].mergedIntoLog {
				continue
			}
			return 1
		}
		return 0
	}
	return 0
}

// compileSink makes the operators of a sink ready.
func compileSink(s *program.Sink, kind program.Kind, tables *preparedTables) (sink, error) {
	to := sink{tensor: s.To, index: s.Index, steps: make([]step, len(s.Ops)), refuses: s.Refuses}
	for i, op := range s.Ops {
		st, err := compileStep(op, kind, tables)
		if err != nil {
			return sink{}, fmt.Errorf("operator %d: %w", i, err)
		}
		st.fillsZeros = st.fillsZeros && i == 0
		to.steps[i] = st
		kind = op.Out(kind)
	}
	mergeClamps(to.steps)
	return to, nil
}

// mergeClamps lets a log do the work of the clamp before it, which saves a pass over the values and often a copy.
func mergeClamps(steps []step) {
	for i := range steps[:max(0, len(steps)-1)] {
		s, next := &steps[i], &steps[i+1]
		lo, hi := float32(s.lowFloat), float32(s.highFloat)
		if s.unit == program.UnitClamp && s.inputKind == program.Float32 && next.unit == program.UnitLog && lo <= hi {
			s.mergedIntoLog, next.logLow, next.logHigh = true, lo, hi
		}
	}
}

// compileStep makes one operator ready for values of kind in.
func compileStep(op program.Op, in program.Kind, tables *preparedTables) (step, error) {
	st := step{unit: op.Unit(), inputKind: in}
	var err error
	switch o := op.(type) {
	case program.FillNull:
		st.fillInt, st.fillFloat = o.Int, o.Float
		st.fillsZeros = in == program.Int64 && o.Int == 0 || in != program.Int64 && math.Float64bits(o.Float) == 0
	case program.Clamp:
		st.lowInt, st.highInt, st.lowFloat, st.highFloat = o.IntLo, o.IntHi, o.FloatLo, o.FloatHi
	case program.Log:
		st.logAdd, st.logLow, st.logHigh = o.Add, float32(math.Inf(-1)), float32(math.Inf(1))
	case *program.Bucketize:
		st.rejectsNaN = o.NaN == program.NaNError && in != program.Int64
		st.table, err = tables.bucketTable(o)
	case *program.LocalHour:
		st.zone, err = tables.zone(o)
	case *program.MapID:
		st.mapValues, st.mapDefault = o.Values, o.Default
		if len(o.Keys) > 0 {
			st.mapKeys, err = tables.keyIndex(o.Keys)
		}
	case program.SigridHash:
		st.hasher, err = sigridhash.New(sigridhash.Params{Salt: o.Salt, Max: o.Max})
	case program.PositiveModulus:
		st.modulus, err = positivemodulus.New(o.M)
	case program.OneHot:
		if st.classCount = o.Classes; o.Ranges {
			st.classes, err = onehot.NewRanges(int64(o.Classes), o.Lower, o.Upper)
		} else {
			st.classes, err = onehot.New(int64(o.Classes))
		}
	case program.Lookup:
		st.lookup, err = newLookup(o)
	case program.HashBucket:
		st.bucketHasher, err = hashcross.New(o.Buckets)
	case program.FirstX:
		st.keepFirst = o.N
	case program.Convert:
		st.outputKind = o.To
	case program.NGram:
		st.ngramSize, st.listsWindows = o.N, o.Mode == program.NGramRAP
	case program.HashBytes:
		st.hashFunction, err = functionOfHash(o.Function)
	case program.Rescale:
		st.multiplier, st.divisor, err = o.Multiplier, o.Divisor, rescale.CheckFactors(o.Multiplier, o.Divisor)
	case program.FixedLength:
		st.fixedLength = o
	case program.Int96Time:
		if st.timeUnit = int96.Seconds; o.To == program.TimeDays {
			st.timeUnit = int96.Days
		}
	case program.Decimal:
		st.scale, st.outputKind = o.Scale, o.To
	case program.Logit:
		st.logit, err = logit.Bounds(o.Eps)
	case program.BoxCox:
		st.boxCox, err = boxcox.New(boxCoxParams(o))
	case program.ListSlice:
		if st.slice = o; o.Padded {
			st.sliceLength, err = listslice.Length(o.Start, o.End)
		}
	case program.FillNaN:
		st.fillFloat = o.Value
	case program.Normalize:
		st.normalize, err = normalize.New(o.Mean, o.Deviation)
	case program.MinMax:
		st.minMax, err = minmax.New(o.Min, o.Max)
	case program.HexToInt, program.ZeroExtend, program.Float16:
	default:
		err = fmt.Errorf("%T is no operator of this engine", op)
	}
	return st, err
}

// functionOfHash turns the program's name of a hash function into the unit's.
func functionOfHash(f program.HashFunction) (hashbytes.Function, error) {
	switch f {
	case program.HashXXH3:
		return hashbytes.XXH3, nil
	case program.HashMurmur3:
		return hashbytes.Murmur3, nil
	case program.HashFarmHash:
		return hashbytes.FarmHash, nil
	}
	return 0, fmt.Errorf("%v is no hash function of this engine", f)
}

// boxCoxParams turns the program's form of BoxCox into the unit's.
func boxCoxParams(b program.BoxCox) boxcox.Params {
	p := boxcox.Params{Lambda1: b.Lambda1, Lambda2: b.Lambda2}
	if b.Mode == program.BoxCoxRAP {
		p.Mode = boxcox.RAP
	}
	return p
}
