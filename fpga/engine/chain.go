package engine

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/firstx"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

// vec is column values on their way through a chain: a view of a decoded block, or of the chain's own buffers once
// an operator has written.
type vec struct {
	kind  program.Kind
	n     int // value slots
	i64   []int64
	f32   []float32
	f64   []float64
	offs  []uint32 // bytes: n+1 of them
	data  []byte
	valid []byte // a byte a slot, 0 = null; nil: no nulls

	list    bool
	lengths []int32 // lists: slots of each row

	// What the chain may overwrite. False: other sinks still read it.
	mine, myValid, myLengths bool

	placed bool // the values are ids of 32 bits, which lie where they stay
}

// buffers are the block memory of one engine thread that operators write to. They grow to the largest block met.
type buffers struct {
	i64     []int64
	f32     []float32
	f64     []float64
	valid   []byte
	lengths []int32
	drop    []byte
	// end is where a chain's last operator may write its result, and final the same while that one runs.
	end, final place
	// late is the checksum that the only operator's values still have to go into, where that one may do it; or nil.
	late *lateSum
}

// place is the final place of a chain's values, as far as there is one that they can be written to straight away.
type place struct {
	ids    []int64   // of ids without nulls
	narrow []byte    // of those as int32, four bytes each
	dense  []float32 // of values on their way to dense
}

// of cuts the place to n values, some of them null if nulls is true.
func (p place) of(n int, nulls bool) place {
	var q place
	if !nulls && len(p.ids) >= n {
		q.ids = p.ids[:n]
	}
	if !nulls && len(p.narrow) >= 4*n {
		q.narrow = p.narrow[:4*n]
	}
	if len(p.dense) >= n {
		q.dense = p.dense[:n]
	}
	return q
}

// room returns the first n elements of *buf, which it lengthens when it must.
func room[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n+n/4)
	}
	return (*buf)[:n]
}

// made is where an operator that reads other memory than it writes puts n integers.
func (b *buffers) made(n int) []int64 {
	if b.final.ids != nil {
		return b.final.ids
	}
	return room(&b.i64, n)
}

// madeDense is where an operator that reads other memory than it writes puts n float32.
func (b *buffers) madeDense(n int) []float32 {
	if b.final.dense != nil {
		return b.final.dense
	}
	return room(&b.f32, n)
}

// chain passes v through the steps and times each.
func (w *worker) chain(steps []step, v *vec) error {
	b, at := &w.buffers, w.now()
	for i := range steps {
		s, n := &steps[i], v.n
		if s.unit == program.UnitFillNull {
			if v.valid == nil || s.zero {
				v.valid = nil
				w.profile[s.unit].add(0, uint64(n))
				continue
			}
			b.fill(s, v)
			at = w.lap(s.unit, at, n)
			continue
		}
		if s.joined {
			w.profile[s.unit].add(0, uint64(n))
			continue
		}
		if v.list && v.valid != nil && s.unit != program.UnitHexToInt {
			b.dropLists(v)
		}
		if i == len(steps)-1 {
			b.final = b.end.of(n, v.valid != nil)
		}
		err := b.step(s, v)
		b.final = place{}
		if err != nil {
			return err
		}
		at = w.lap(s.unit, at, n)
	}
	if v.list && v.valid != nil {
		b.dropLists(v)
	}
	return nil
}

// fill replaces nulls; afterwards there are none.
func (b *buffers) fill(s *step, v *vec) {
	b.own(v)
	switch v.kind {
	case program.Int64:
		fillnull.Int64(v.i64, v.valid, s.i0)
	case program.Float32:
		fillnull.Float32(v.f32, v.valid, float32(s.f0))
	case program.Float64:
		fillnull.Float64(v.f64, v.valid, s.f0)
	}
	v.valid = nil
}

func (b *buffers) step(s *step, v *vec) error {
	switch s.unit {
	case program.UnitClamp:
		b.own(v)
		switch v.kind {
		case program.Int64:
			return clamp.Int64(v.i64, s.i0, s.i1)
		case program.Float32:
			return clamp.Float32(v.f32, float32(s.f0), float32(s.f1))
		default:
			return clamp.Float64(v.f64, s.f0, s.f1)
		}
	case program.UnitLog:
		dst := b.madeDense(v.n)
		logn.LogClamped(dst, v.f32, s.add, s.lo, s.hi)
		v.f32, v.mine = dst, true
	case program.UnitBucketize:
		return b.bucketize(s, v)
	case program.UnitSigridHash:
		if b.final.narrow != nil && s.hash.Fits32() {
			if l := b.late; l != nil {
				l.sum = s.hash.Hash32Sum(b.final.narrow, v.i64[:v.n], l.sum)
				l.at += 8 * v.n
			} else {
				s.hash.Hash32(b.final.narrow, v.i64[:v.n])
			}
			v.i64, v.placed = nil, true
			return nil
		}
		dst := b.made(v.n)
		s.hash.Hash(dst, v.i64)
		v.i64, v.mine = dst, true
	case program.UnitPositiveModulus:
		dst := b.made(v.n)
		s.mod.Mod(dst, v.i64)
		v.i64, v.mine = dst, true
	case program.UnitZeroExtend:
		b.own(v)
		zeroextend.Int64(v.i64)
	case program.UnitHexToInt:
		return b.hex(v)
	case program.UnitFirstX:
		return b.firstX(s.i0, v)
	case program.UnitConvert:
		b.convert(s.to, v)
	}
	return nil
}

// own makes v's values the chain's, to be changed in place.
func (b *buffers) own(v *vec) {
	if v.mine {
		return
	}
	v.mine = true
	switch v.kind {
	case program.Int64:
		dst := room(&b.i64, v.n)
		copy(dst, v.i64)
		v.i64 = dst
	case program.Float32:
		dst := room(&b.f32, v.n)
		copy(dst, v.f32)
		v.f32 = dst
	case program.Float64:
		dst := room(&b.f64, v.n)
		copy(dst, v.f64)
		v.f64 = dst
	}
}

func (b *buffers) ownLengths(v *vec) {
	if !v.myLengths {
		dst := room(&b.lengths, len(v.lengths))
		copy(dst, v.lengths)
		v.lengths, v.myLengths = dst, true
	}
}

func (b *buffers) bucketize(s *step, v *vec) error {
	if s.guard && v.valid != nil {
		// An operator may have made a NaN of the 0 in a null's slot; only a value's NaN is an error.
		b.own(v)
		clearNulls(v)
	}
	dst := b.made(v.n)
	var err error
	switch v.kind {
	case program.Int64:
		err = s.table.Int64(dst, v.i64)
	case program.Float32:
		err = s.table.Float32(dst, v.f32)
	default:
		err = s.table.Float64(dst, v.f64)
	}
	v.kind, v.i64, v.f32, v.f64, v.mine = program.Int64, dst, nil, nil, true
	return err
}

func clearNulls(v *vec) {
	for i, ok := range v.valid {
		if ok == 0 {
			if v.kind == program.Float32 {
				v.f32[i] = 0
			} else {
				v.f64[i] = 0
			}
		}
	}
}

// hex parses tokens. An empty one is a null made here; lists that held a null before are dropped, unparsed. Tokens come
// from the decoder alone, so the validity is never the chain's yet.
func (b *buffers) hex(v *vec) error {
	valid := room(&b.valid, v.n)
	drop := v.list && v.valid != nil
	if v.valid == nil {
		for i := range valid {
			valid[i] = 1
		}
	} else {
		copy(valid, v.valid)
	}
	if drop {
		b.dropFlags(v)
		b.spread(v, valid)
	}
	dst := room(&b.i64, v.n)
	var err error
	if v.n > 0 {
		err = hextoint.Hex(dst, v.offs, v.data, valid)
	}
	v.kind, v.i64, v.mine, v.offs, v.data = program.Int64, dst, true, nil, nil
	v.valid, v.myValid = valid, true
	if err != nil {
		return err
	}
	if drop {
		b.compact(v)
	}
	if bytes.IndexByte(v.valid, 0) < 0 {
		v.valid = nil
	}
	return nil
}

func (b *buffers) firstX(n int64, v *vec) error {
	b.own(v)
	b.ownLengths(v)
	var kept int
	var err error
	switch v.kind {
	case program.Int64:
		kept, err = firstx.FirstX(v.lengths, v.i64, n)
		v.i64 = v.i64[:kept]
	case program.Float32:
		kept, err = firstx.FirstX(v.lengths, v.f32, n)
		v.f32 = v.f32[:kept]
	default:
		kept, err = firstx.FirstX(v.lengths, v.f64, n)
		v.f64 = v.f64[:kept]
	}
	v.n = kept
	return err
}

func (b *buffers) convert(to program.Kind, v *vec) {
	switch {
	case to == program.Float64 && v.kind == program.Float32:
		dst := room(&b.f64, v.n)
		convert.Float32ToFloat64(dst, v.f32[:v.n])
		v.f64 = dst
	case to == program.Float64:
		dst := room(&b.f64, v.n)
		convert.Int64ToFloat64(dst, v.i64[:v.n])
		v.f64 = dst
	case v.kind == program.Int64:
		dst := b.madeDense(v.n)
		convert.Int64ToFloat32(dst, v.i64[:v.n])
		v.f32 = dst
	default:
		dst := b.madeDense(v.n)
		convert.Float64ToFloat32(dst, v.f64[:v.n])
		v.f32 = dst
	}
	v.kind, v.mine = to, true
}

// dropLists gives length 0 to every list that holds a null; afterwards there are no nulls.
func (b *buffers) dropLists(v *vec) {
	b.dropFlags(v)
	b.own(v)
	b.compact(v)
	v.valid = nil
}

// dropFlags sets b.drop: a byte a row, 1 where a slot of the row is null.
func (b *buffers) dropFlags(v *vec) {
	drop := room(&b.drop, len(v.lengths))
	at := 0
	for row, l := range v.lengths {
		drop[row] = 0
		if bytes.IndexByte(v.valid[at:at+int(l)], 0) >= 0 {
			drop[row] = 1
		}
		at += int(l)
	}
	b.drop = drop
}

// spread makes all slots of the flagged rows null.
func (b *buffers) spread(v *vec, valid []byte) {
	at := 0
	for row, l := range v.lengths {
		if b.drop[row] != 0 {
			clear(valid[at : at+int(l)])
		}
		at += int(l)
	}
}

// compact takes the flagged rows' slots out. v's values must be the chain's, and so must its validity if it is kept.
func (b *buffers) compact(v *vec) {
	b.ownLengths(v)
	from, to := 0, 0
	for row, l := range v.lengths {
		n := int(l)
		if b.drop[row] != 0 {
			v.lengths[row] = 0
			from += n
			continue
		}
		if from != to {
			switch v.kind {
			case program.Int64:
				copy(v.i64[to:to+n], v.i64[from:from+n])
			case program.Float32:
				copy(v.f32[to:to+n], v.f32[from:from+n])
			case program.Float64:
				copy(v.f64[to:to+n], v.f64[from:from+n])
			}
			if v.myValid {
				copy(v.valid[to:to+n], v.valid[from:from+n])
			}
		}
		from, to = from+n, to+n
	}
	v.n = to
	switch v.kind {
	case program.Int64:
		v.i64 = v.i64[:to]
	case program.Float32:
		v.f32 = v.f32[:to]
	case program.Float64:
		v.f64 = v.f64[:to]
	}
	if v.myValid {
		v.valid = v.valid[:to]
	}
}
