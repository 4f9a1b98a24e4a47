package engine

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/fillnan"
	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/firstx"
	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/mapid"
	"github.com/millrace/millrace/fpga/unit/ngram"
	"github.com/millrace/millrace/fpga/unit/rescale"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

// chainValues is column values on their way through a chain of operators. They are a view of a decoded block, or lie in
// the chain's own buffers once an operator has written them.
type chainValues struct {
	kind     program.Kind
	count    int // values, nulls included
	int64s   []int64
	float32s []float32
	float64s []float64
	offsets  []uint32 // bytes: one more than values
	data     []byte
	valid    []byte // a byte a value, 0 for a null; nil if there are no nulls

	list    bool
	lengths []int32 // lists: how many values each row has
	// scores are those of ids in lists, before the chain dropped some of the ids; nil if the values have none.
	scores []float32

	// The chain may overwrite the slices that it owns. Other sinks still read the rest.
	ownsValues, ownsValid, ownsLengths bool

	inTensor bool // the values are ids of 32 bits that lie in the tensor already
}

// buffers are the block memory of one engine thread that operators write to. They grow to the size of the largest
// block so far.
type buffers struct {
	int64s      []int64
	float32s    []float32
	float64s    []float64
	grown       grownLists
	classes     []int64
	valid       []byte
	lengths     []int32
	droppedRows []byte
	// chainDestination is where a chain's last operator may write its result. stepDestination is chainDestination, cut
	// to the number of values, while that operator runs, and empty otherwise.
	chainDestination, stepDestination destination
	// operatorChecksum is the checksum of the open page, if the only operator of a chain adds its input to the
	// checksum. Else it is nil.
	operatorChecksum *pendingChecksum
	// lookups are the slice's lookup tables, and lookupKeys the keys of one block.
	lookups    []vocabulary.Stored
	lookupKeys [lookupBlock]int64
}

// destination is the memory in which a chain's values end, where the last operator can write them there directly. Nil
// fields mean that it cannot.
type destination struct {
	ids   []int64   // for ids without nulls
	ids32 []byte    // for such ids as int32, four bytes each
	dense []float32 // for values of dense
}

// cutTo returns the destination cut to n values. Ids with nulls among them cannot be written directly, because nulls
// are left out.
func (d destination) cutTo(n int, nulls bool) destination {
	var c destination
	if !nulls && len(d.ids) >= n {
		c.ids = d.ids[:n]
	}
	if !nulls && len(d.ids32) >= 4*n {
		c.ids32 = d.ids32[:4*n]
	}
	if len(d.dense) >= n {
		c.dense = d.dense[:n]
	}
	return c
}

// resize returns the first n elements of *buf, and allocates a larger buffer if *buf is too small. The elements are not
// cleared.
func resize[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n+n/4)
	}
	return (*buf)[:n]
}

// intDestination returns memory for n integers that an operator makes from other memory: the step's destination if it
// has one, else a buffer.
func (b *buffers) intDestination(n int) []int64 {
	if b.stepDestination.ids != nil {
		return b.stepDestination.ids
	}
	return resize(&b.int64s, n)
}

// floatDestination returns memory for n float32 values that an operator makes from other memory: the step's destination
// if it has one, else a buffer.
func (b *buffers) floatDestination(n int) []float32 {
	if b.stepDestination.dense != nil {
		return b.stepDestination.dense
	}
	return resize(&b.float32s, n)
}

// runChain passes v through the steps. Afterwards no list holds a null.
func (x *executor) runChain(steps []step, v *chainValues) error {
	if err := x.runSteps(steps, v); err != nil {
		return err
	}
	if v.list && v.valid != nil {
		x.buffers.emptyNullLists(v)
	}
	return nil
}

// runSteps passes v through the steps and times each step. The lists of v may hold nulls afterwards.
func (x *executor) runSteps(steps []step, v *chainValues) error {
	b, at := &x.buffers, x.readClock()
	for i := range steps {
		s, n := &steps[i], v.count
		if s.unit == program.UnitFillNull {
			if v.valid == nil || s.fillsZeros {
				v.valid = nil
				x.profile[s.unit].addRun(0, uint64(n))
				continue
			}
			b.fillNulls(s, v)
			at = x.recordRun(s.unit, at, n)
			continue
		}
		if s.mergedIntoLog {
			x.profile[s.unit].addRun(0, uint64(n))
			continue
		}
		if v.list && v.valid != nil && v.kind != program.Bytes {
			b.emptyNullLists(v)
		}
		if i == len(steps)-1 {
			b.stepDestination = b.chainDestination.cutTo(n, v.valid != nil)
		}
		err := b.runStep(s, v)
		b.stepDestination = destination{}
		if err != nil {
			return err
		}
		at = x.recordRun(s.unit, at, n)
	}
	return nil
}

// fillNulls replaces nulls by the step's value. Afterwards v has no nulls.
func (b *buffers) fillNulls(s *step, v *chainValues) {
	b.ownValues(v)
	switch v.kind {
	case program.Int64:
		fillnull.Int64(v.int64s, v.valid, s.fillInt)
	case program.Float32:
		fillnull.Float32(v.float32s, v.valid, float32(s.fillFloat))
	case program.Float64:
		fillnull.Float64(v.float64s, v.valid, s.fillFloat)
	}
	v.valid = nil
}

// runStep applies one operator to v.
func (b *buffers) runStep(s *step, v *chainValues) error {
	switch s.unit {
	case program.UnitClamp:
		b.ownValues(v)
		switch v.kind {
		case program.Int64:
			return clamp.Int64(v.int64s, s.lowInt, s.highInt)
		case program.Float32:
			return clamp.Float32(v.float32s, float32(s.lowFloat), float32(s.highFloat))
		default:
			return clamp.Float64(v.float64s, s.lowFloat, s.highFloat)
		}
	case program.UnitFillNaN:
		b.ownValues(v)
		if v.kind == program.Float32 {
			fillnan.Float32(v.float32s[:v.count], float32(s.fillFloat))
		} else {
			fillnan.Float64(v.float64s[:v.count], s.fillFloat)
		}
	case program.UnitLog:
		dst := b.floatDestination(v.count)
		logn.LogClamped(dst, v.float32s, s.logAdd, s.logLow, s.logHigh)
		v.float32s, v.ownsValues = dst, true
	case program.UnitLogit:
		dst := b.floatDestination(v.count)
		s.logit.Logit(dst, v.float32s)
		v.float32s, v.ownsValues = dst, true
	case program.UnitBoxCox:
		dst := b.floatDestination(v.count)
		s.boxCox.Apply(dst, v.float32s)
		v.float32s, v.ownsValues = dst, true
	case program.UnitNormalize:
		dst := b.floatDestination(v.count)
		s.normalize.Apply(dst, v.float32s[:v.count])
		v.float32s, v.ownsValues = dst, true
	case program.UnitMinMax:
		dst := b.floatDestination(v.count)
		s.minMax.Apply(dst, v.float32s[:v.count])
		v.float32s, v.ownsValues = dst, true
	case program.UnitBucketize:
		return b.bucketize(s, v)
	case program.UnitSigridHash:
		if b.stepDestination.ids32 != nil && s.hasher.Fits32() {
			if pageSum := b.operatorChecksum; pageSum != nil {
				pageSum.sum = s.hasher.Hash32Sum(b.stepDestination.ids32, v.int64s[:v.count], pageSum.sum)
				pageSum.summed += 8 * v.count
			} else {
				s.hasher.Hash32(b.stepDestination.ids32, v.int64s[:v.count])
			}
			v.int64s, v.inTensor = nil, true
			return nil
		}
		dst := b.intDestination(v.count)
		s.hasher.Hash(dst, v.int64s)
		v.int64s, v.ownsValues = dst, true
	case program.UnitPositiveModulus:
		dst := b.intDestination(v.count)
		s.modulus.Mod(dst, v.int64s)
		v.int64s, v.ownsValues = dst, true
	case program.UnitOneHot:
		b.findClasses(s, v)
	case program.UnitVocabulary:
		return b.lookUp(s.lookup, v)
	case program.UnitHashBucket:
		dst := b.intDestination(v.count)
		s.bucketHasher.Buckets(dst, v.int64s[:v.count])
		v.int64s, v.ownsValues = dst, true
	case program.UnitLocalHour:
		dst := b.intDestination(v.count)
		s.zone.Hours(dst, v.int64s[:v.count])
		v.int64s, v.ownsValues = dst, true
	case program.UnitMapID:
		dst := b.intDestination(v.count)
		if s.mapKeys != nil {
			s.mapKeys.Map(dst, v.int64s[:v.count], s.mapValues, s.mapDefault)
		} else {
			mapid.Dense(dst, v.int64s[:v.count], s.mapValues, s.mapDefault)
		}
		v.int64s, v.ownsValues = dst, true
	case program.UnitZeroExtend:
		b.ownValues(v)
		zeroextend.Int64(v.int64s)
	case program.UnitHexToInt:
		return b.parseTokens(v)
	case program.UnitHashBytes:
		return b.hashValues(s.hashFunction, v)
	case program.UnitRescale:
		dst := b.intDestination(v.count)
		err := rescale.Rescale(dst, v.int64s[:v.count], v.valid, s.multiplier, s.divisor)
		v.int64s, v.ownsValues = dst, true
		return err
	case program.UnitInt96Time:
		return b.convertInt96(s.timeUnit, v)
	case program.UnitDecimal:
		return b.convertDecimals(s, v)
	case program.UnitFloat16:
		return b.widenHalves(v)
	case program.UnitFirstX:
		return b.firstX(s.keepFirst, v)
	case program.UnitListSlice:
		return b.sliceLists(s, v)
	case program.UnitNGram:
		b.ownLengths(v)
		if s.listsWindows {
			return b.listWindows(s.ngramSize, v)
		}
		b.ownValues(v)
		kept, err := ngram.NGram(v.lengths, v.int64s, s.ngramSize)
		v.count, v.int64s = kept, v.int64s[:kept]
		return err
	case program.UnitConvert:
		b.convert(s.outputKind, v)
	}
	return nil
}

// ownValues copies v's values to a buffer of the chain, unless they are there already, so that operators may change
// them in place.
func (b *buffers) ownValues(v *chainValues) {
	if v.ownsValues {
		return
	}
	v.ownsValues = true
	switch v.kind {
	case program.Int64:
		dst := resize(&b.int64s, v.count)
		copy(dst, v.int64s)
		v.int64s = dst
	case program.Float32:
		dst := resize(&b.float32s, v.count)
		copy(dst, v.float32s)
		v.float32s = dst
	case program.Float64:
		dst := resize(&b.float64s, v.count)
		copy(dst, v.float64s)
		v.float64s = dst
	}
}

// ownLengths copies v's lengths to a buffer of the chain, unless they are there already.
func (b *buffers) ownLengths(v *chainValues) {
	if !v.ownsLengths {
		dst := resize(&b.lengths, len(v.lengths))
		copy(dst, v.lengths)
		v.lengths, v.ownsLengths = dst, true
	}
}

func (b *buffers) bucketize(s *step, v *chainValues) error {
	if s.rejectsNaN && v.valid != nil {
		// An operator may have made a NaN of the 0 that stands for a null. Only the NaN of a value is an error.
		b.ownValues(v)
		clearNulls(v)
	}
	dst := b.intDestination(v.count)
	var err error
	switch v.kind {
	case program.Int64:
		err = s.table.Int64(dst, v.int64s)
	case program.Float32:
		err = s.table.Float32(dst, v.float32s)
	default:
		err = s.table.Float64(dst, v.float64s)
	}
	v.kind, v.int64s, v.float32s, v.float64s, v.ownsValues = program.Int64, dst, nil, nil, true
	return err
}

// clearNulls sets nulls to 0.
func clearNulls(v *chainValues) {
	for i, ok := range v.valid {
		if ok == 0 {
			if v.kind == program.Float32 {
				v.float32s[i] = 0
			} else {
				v.float64s[i] = 0
			}
		}
	}
}

// parseTokens turns hexadecimal tokens into integers. An empty token becomes a null. A list that held a null before
// becomes empty, and its tokens are not parsed. Tokens come straight from the decoder, so v's validity is never the
// chain's own yet.
func (b *buffers) parseTokens(v *chainValues) error {
	valid := resize(&b.valid, v.count)
	drop := v.list && v.valid != nil
	if v.valid == nil {
		for i := range valid {
			valid[i] = 1
		}
	} else {
		copy(valid, v.valid)
	}
	if drop {
		b.flagNullLists(v)
		b.nullFlaggedLists(v, valid)
	}
	dst := resize(&b.int64s, v.count)
	var err error
	if v.count > 0 {
		err = hextoint.Hex(dst, v.offsets, v.data, valid)
	}
	v.kind, v.int64s, v.ownsValues, v.offsets, v.data = program.Int64, dst, true, nil, nil
	v.valid, v.ownsValid = valid, true
	if err != nil {
		return err
	}
	if drop {
		b.removeFlaggedLists(v)
	}
	if bytes.IndexByte(v.valid, 0) < 0 {
		v.valid = nil
	}
	return nil
}

// hashValues turns bytes into ids. A null stays null, and a list that holds a null becomes empty.
func (b *buffers) hashValues(function hashbytes.Function, v *chainValues) error {
	dst := b.intDestination(v.count)
	if v.count > 0 {
		if err := hashbytes.Hash(dst, v.offsets, v.data, v.valid, function); err != nil {
			return err
		}
	}
	v.kind, v.int64s, v.ownsValues, v.offsets, v.data = program.Int64, dst, true, nil, nil
	if v.list && v.valid != nil {
		b.emptyNullLists(v)
	}
	return nil
}

// firstX keeps the first n values of every list.
func (b *buffers) firstX(n int64, v *chainValues) error {
	b.ownValues(v)
	b.ownLengths(v)
	var kept int
	var err error
	switch v.kind {
	case program.Int64:
		kept, err = firstx.FirstX(v.lengths, v.int64s, n)
		v.int64s = v.int64s[:kept]
	case program.Float32:
		kept, err = firstx.FirstX(v.lengths, v.float32s, n)
		v.float32s = v.float32s[:kept]
	default:
		kept, err = firstx.FirstX(v.lengths, v.float64s, n)
		v.float64s = v.float64s[:kept]
	}
	v.count = kept
	return err
}

// convert changes the kind of v's values.
func (b *buffers) convert(to program.Kind, v *chainValues) {
	switch {
	case to == program.Float64 && v.kind == program.Float32:
		dst := resize(&b.float64s, v.count)
		convert.Float32ToFloat64(dst, v.float32s[:v.count])
		v.float64s = dst
	case to == program.Float64:
		dst := resize(&b.float64s, v.count)
		convert.Int64ToFloat64(dst, v.int64s[:v.count])
		v.float64s = dst
	case v.kind == program.Int64:
		dst := b.floatDestination(v.count)
		convert.Int64ToFloat32(dst, v.int64s[:v.count])
		v.float32s = dst
	default:
		dst := b.floatDestination(v.count)
		convert.Float64ToFloat32(dst, v.float64s[:v.count])
		v.float32s = dst
	}
	v.kind, v.ownsValues = to, true
}
