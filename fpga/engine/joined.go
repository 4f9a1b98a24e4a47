package engine

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// joined is what is made of a block of a map: of each feature its values, row by row, through its chain of operators.
type joined struct {
	places []uint32 // of lists, slots x rows: the entry that a row has for a slot, plus 1; 0: none
	starts []uint32 // of lists: where an entry's elements begin; one more than there are entries
	scored []uint32 // places of a feature, without lists with a null score

	// Of numbers, slots x rows; of lists, the elements of the feature at hand.
	i64     []int64
	f32     []float32
	f64     []float64
	valid   []byte
	lengths []int32
	whole   []int32   // lengths before the operators
	scores  []float32 // of each element before the operators
	reals   []float32 // the block's scores, where they are no float32

	// Of all features that become keys, one behind the other.
	ids     []int64
	weights []float32
	counts  []int32 // keys x rows
	byRow   []int64 // ids, row by row
	byRowW  []float32
	at      []uint64 // of each key
	tile    []uint32 // lengths, row by row
}

func (j *joined) bytes() int {
	return 4*(cap(j.places)+cap(j.starts)+cap(j.scored)+cap(j.f32)+cap(j.lengths)+cap(j.whole)+cap(j.scores)+cap(j.reals)+cap(j.weights)+cap(j.counts)+cap(j.byRowW)+cap(j.tile)) +
		8*(cap(j.i64)+cap(j.f64)+cap(j.ids)+cap(j.byRow)+cap(j.at)) + cap(j.valid)
}

// join makes of the block of n rows, the first of which is a row of the mini-batch, what goes into the tensors. It is not ok if
// they lack room. at is the part that an error is of.
func (w *worker) join(plan *mapPlan, row uint64, n int, base uint64) (ok bool, at int, err error) {
	p := &w.parts
	clock := w.now()
	if at, err := p.fits(); err != nil {
		return false, at, p.scans[at].at(&p.scans[at].cur, err)
	}
	keys, values := &p.readers[0].block, &p.readers[1].block
	list := p.scans[1].col.list
	if list {
		p.findPlaces(plan, n)
		p.findStarts(values.Inner)
	} else {
		p.spread(plan, values, n)
	}
	if plan.scored {
		p.readScores(&p.readers[2].block)
	}
	w.lap(program.UnitMap, clock, len(keys.I64))

	j := &p.joined
	j.ids, j.weights, j.counts = j.ids[:0], j.weights[:0], j.counts[:0]
	for i := range plan.picks {
		k := &plan.picks[i]
		if list {
			err = w.pickList(k, values, n)
		} else {
			err = w.pickScalar(k, row, n)
		}
		if err != nil {
			s := &p.scans[1]
			return false, 1, s.at(&s.cur, err)
		}
		// Many sinks may take one long list: what the output has no room for is not made.
		if need := w.out.written + uint64(len(j.ids)); !w.out.fixed && need > w.out.capacity {
			p.scans[1].want(program.MoreOutput, need)
			return false, 1, nil
		}
	}
	if plan.keys == 0 || w.out.fixed {
		return true, 0, nil
	}
	ok, err = w.stage(plan, row, n, base)
	return ok, 1, err
}

// fits checks that the leaves have as many entries, and scores as many elements as ids.
func (p *parts) fits() (at int, err error) {
	keys := &p.readers[0].block
	for i := 1; i < len(p.scans); i++ {
		b := &p.readers[i].block
		if !slices.Equal(b.Lengths, keys.Lengths) {
			return i, badPage("another number of entries than the map has keys")
		}
		if i == 2 && !slices.Equal(b.Inner, p.readers[1].block.Inner) {
			return i, badPage("another number of scores than of ids")
		}
	}
	return 0, nil
}

// findPlaces finds the entry of each slot in each of n rows. Of several with one key the last counts; an entry with a null
// for a key is nobody's.
func (p *parts) findPlaces(plan *mapPlan, n int) {
	b := &p.readers[0].block
	p.places = room(&p.places, plan.slots*n)
	clear(p.places)
	keys, valid := b.I64, b.Valid
	if b.Nulls == 0 {
		valid = nil
	}
	e := 0
	for r, l := range b.Lengths {
		for end := e + int(l); e < end; e++ {
			slot := plan.table.find(keys[e])
			if slot == 0 || valid != nil && valid[e] == 0 {
				continue
			}
			p.places[int(slot-1)*n+r] = uint32(e) + 1
		}
	}
}

func (p *parts) findStarts(inner []int32) {
	p.starts = room(&p.starts, len(inner)+1)
	at := uint32(0)
	for i, l := range inner {
		p.starts[i] = at
		at += uint32(l)
	}
	p.starts[len(inner)] = at
}

// readScores makes float32 of the block's scores.
func (p *parts) readScores(b *decoder.Block) {
	switch b.Kind {
	case format.KindFloat32:
		// As they are, see score.
	case format.KindFloat64:
		p.reals = room(&p.reals, len(b.F64))
		convert.Float64ToFloat32(p.reals, b.F64)
	default:
		p.reals = room(&p.reals, len(b.I64))
		convert.Int64ToFloat32(p.reals, b.I64)
	}
}

// score is the block's scores as float32.
func (p *parts) score(b *decoder.Block) []float32 {
	if b.Kind == format.KindFloat32 {
		return b.F32
	}
	return p.reals
}

// spread puts the numbers of n rows where their slots have them, column by column, each with a byte that tells whether it is
// there. Of several with one key the last counts; an entry with a null for a key is nobody's.
func (p *parts) spread(plan *mapPlan, b *decoder.Block, n int) {
	j, size := &p.joined, plan.slots*n
	j.valid = room(&j.valid, size)
	clear(j.valid)
	keys := &p.readers[0].block
	switch b.Kind {
	case format.KindFloat32:
		j.f32 = room(&j.f32, size)
		spread(plan, keys, b, j.f32, b.F32, j.valid, n)
	case format.KindFloat64:
		j.f64 = room(&j.f64, size)
		spread(plan, keys, b, j.f64, b.F64, j.valid, n)
	default:
		j.i64 = room(&j.i64, size)
		spread(plan, keys, b, j.i64, b.I64, j.valid, n)
	}
}

func spread[T any](plan *mapPlan, keys, values *decoder.Block, to, from []T, valid []byte, n int) {
	clear(to) // as decoders leave a 0 in the slot of a null
	from = from[:len(keys.I64)]
	e := 0
	for r, l := range keys.Lengths {
		for end := e + int(l); e < end; e++ {
			slot := plan.table.find(keys.I64[e])
			if slot == 0 || keys.Nulls > 0 && keys.Valid[e] == 0 {
				continue
			}
			at := int(slot-1)*n + r
			to[at], valid[at] = from[e], 1
			if values.Nulls > 0 {
				valid[at] = values.Valid[e]
			}
		}
	}
}

// pickScalar runs one feature of a map to numbers through its chain and writes it, or where its ids are appended to those of
// other keys adds it to them.
func (w *worker) pickScalar(k *pick, row uint64, n int) error {
	p := &w.parts
	j := &p.joined
	at := k.slot * n
	v := vec{kind: p.scans[1].col.kind, n: n, mine: k.last}
	switch v.kind {
	case program.Int64:
		v.i64 = j.i64[at:][:n]
	case program.Float32:
		v.f32 = j.f32[at:][:n]
	default:
		v.f64 = j.f64[at:][:n]
	}
	if valid := j.valid[at:][:n]; bytes.IndexByte(valid, 0) >= 0 {
		v.valid = valid
	}
	w.buffers.end = place{}
	switch {
	case k.to == program.ToDense:
		w.buffers.end.dense = w.out.denseRoom(uint64(k.index), row, n)
	case k.to == program.ToSparse && w.out.fixed:
		w.buffers.end = w.out.idRoom(w.out.at(uint64(k.index), row), n)
	}
	if err := w.chain(k.steps, &v); err != nil {
		return err
	}
	if k.to != program.ToSparse || w.out.fixed {
		return w.out.store(&k.sink, row, &v)
	}
	for r, id := range v.i64[:n] {
		there := v.valid == nil || v.valid[r] != 0
		if there {
			j.ids = append(j.ids, id)
			j.counts = append(j.counts, 1)
		} else {
			j.counts = append(j.counts, 0)
		}
	}
	j.ones(len(w.out.weights) > 0)
	return nil
}

// ones gives weight 1 to ids that have none yet.
func (j *joined) ones(weighted bool) {
	if weighted {
		for len(j.weights) < len(j.ids) {
			j.weights = append(j.weights, 1)
		}
	}
}

// pickList runs one feature of a map to lists through its chain and adds its ids to those of other keys.
func (w *worker) pickList(k *pick, b *decoder.Block, n int) error {
	clock := w.now()
	p := &w.parts
	j := &p.joined
	places := j.places[k.slot*n:][:n]
	v := vec{kind: p.scans[1].col.kind, list: true, mine: true, myValid: true, myLengths: true}
	var scores []float32
	var scoreValid []byte
	if k.scored {
		s := &p.readers[2].block
		if scores = p.score(s); s.Nulls > 0 {
			scoreValid = s.Valid
		}
	}
	if scoreValid != nil {
		j.scored = append(j.scored[:0], places...) // others may take the same key without scores
		places = j.scored
	}
	j.lengths = room(&j.lengths, n)
	for r, e := range places {
		j.lengths[r] = 0
		if e == 0 {
			continue
		}
		from, to := j.starts[e-1], j.starts[e]
		if scoreValid != nil && bytes.IndexByte(scoreValid[from:to], 0) >= 0 {
			places[r] = 0
			continue
		}
		j.lengths[r] = int32(to - from)
		v.n += int(to - from)
	}
	switch v.kind {
	case program.Int64:
		v.i64 = takeLists(&j.i64, b.I64, places, j.starts, v.n)
	case program.Float32:
		v.f32 = takeLists(&j.f32, b.F32, places, j.starts, v.n)
	default:
		v.f64 = takeLists(&j.f64, b.F64, places, j.starts, v.n)
	}
	if b.Nulls > 0 {
		v.valid = takeLists(&j.valid, b.Valid, places, j.starts, v.n)
		if bytes.IndexByte(v.valid, 0) < 0 {
			v.valid = nil
		}
	}
	if k.scored {
		takeLists(&j.scores, scores, places, j.starts, v.n)
		j.whole = append(j.whole[:0], j.lengths...)
	}
	v.lengths = j.lengths
	w.lap(program.UnitMap, clock, v.n)
	w.buffers.end = place{}
	if err := w.chain(k.steps, &v); err != nil {
		return err
	}
	j.ids = append(j.ids, v.i64[:v.n]...)
	j.counts = append(j.counts, v.lengths[:n]...)
	if k.scored {
		// Operators leave the first elements of a list, all or none.
		at := 0
		for r, l := range v.lengths[:n] {
			j.weights = append(j.weights, j.scores[at:at+int(l)]...)
			at += int(j.whole[r])
		}
	}
	j.ones(len(w.out.weights) > 0)
	return nil
}

// takeLists gathers the n elements of the lists that places name.
func takeLists[T any](to *[]T, from []T, places, starts []uint32, n int) []T {
	dst := room(to, n)[:0]
	for _, e := range places {
		if e != 0 {
			dst = append(dst, from[starts[e-1]:starts[e]]...)
		}
	}
	*to = dst
	return dst
}
