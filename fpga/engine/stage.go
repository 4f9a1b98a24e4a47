package engine

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// The ids of a map's keys are made row by row, and a keyed jagged tensor has them key by key. Until the mini-batch's last row they
// lie row by row in the output, behind what was written before; then they are put in order. Nothing else is kept between slices.

// staged returns the element of kjt.values at which the map's values begin. Those of earlier tasks lie there row by row, in
// the keys' order, so that their lengths tell how many they are.
func (w *worker) staged(plan *mapPlan, t *program.Task) (base uint64, err error) {
	base = w.out.written
	if w.out.fixed || plan.keys == 0 || t.Row == 0 {
		return base, nil
	}
	sum := uint64(0)
	for k := range uint64(plan.keys) {
		lengths := w.out.lengths[4*(uint64(plan.first)+k)*w.out.rows:]
		for r := range uint64(t.Row) {
			sum += uint64(le.Uint32(lengths[4*r:]))
		}
	}
	if sum > base {
		return 0, badSlice("%d values lie in the rows before %d, %d were written", sum, t.Row, base)
	}
	return base - sum, nil
}

// stage writes lengths, and ids and weights behind those of the rows before, row by row. It is not ok if the output lacks room
// for them, or for putting them in order; then it says how much it wants.
func (w *worker) stage(plan *mapPlan, row uint64, n int, base uint64) (ok bool, err error) {
	clock := w.now()
	p, o := &w.parts, &w.out
	j := &p.joined
	end := o.written + uint64(len(j.ids))
	need := end
	if plan.keys > 1 {
		need += end - base
	}
	if need > o.capacity {
		p.scans[1].want(program.MoreOutput, need)
		return false, nil
	}
	for k := range plan.keys {
		copy(o.lengths[4*((uint64(plan.first)+uint64(k))*o.rows+row):], bytesOf(j.counts[k*n:][:n]))
	}
	o.bytes += 4 * uint64(plan.keys*n)
	ids, weights := j.ids, j.weights
	if plan.keys > 1 {
		ids, weights = j.rows(plan.keys, n)
	}
	if err := o.putIDs(o.written, row, &vec{i64: ids}, len(ids)); err != nil {
		return false, err
	}
	o.putWeights(o.written, weights)
	o.written = end
	w.lap(program.UnitMap, clock, len(ids))
	return true, nil
}

// rows puts the ids, which lie key by key, in the order of rows, and so their weights.
func (j *joined) rows(keys, n int) ([]int64, []float32) {
	j.at = room(&j.at, keys)
	at := uint64(0)
	for k := range keys {
		j.at[k] = at
		for _, l := range j.counts[k*n:][:n] {
			at += uint64(l)
		}
	}
	j.byRow, j.byRowW = room(&j.byRow, len(j.ids))[:0], room(&j.byRowW, len(j.weights))[:0]
	for r := range n {
		for k := range keys {
			l := uint64(j.counts[k*n+r])
			if l == 0 {
				continue
			}
			from := j.at[k]
			j.at[k] = from + l
			j.byRow = append(j.byRow, j.ids[from:from+l]...)
			if len(j.weights) > 0 {
				j.byRowW = append(j.byRowW, j.weights[from:from+l]...)
			}
		}
	}
	return j.byRow, j.byRowW
}

// unstage puts a map's values, which lie row by row, key by key: it copies them behind themselves and from there to their
// places. What lengths say is checked as they are read: they lie in memory that the host writes, too.
func (w *worker) unstage(plan *mapPlan, base uint64) error {
	o, j := &w.out, &w.parts.joined
	n := o.written - base
	if plan.keys < 2 || n == 0 {
		return nil
	}
	if o.written+n > o.capacity {
		return badSlice("no room to put %d values of a map in order", n)
	}
	j.at = room(&j.at, plan.keys)
	at := base
	for k := range j.at {
		j.at[k] = at
		lengths := o.lengths[4*(uint64(plan.first)+uint64(k))*o.rows:]
		for r := range o.rows {
			at += uint64(le.Uint32(lengths[4*r:]))
		}
	}
	if at != o.written {
		return badSlice("the lengths of a map sum to %d, %d values were written", at-base, n)
	}
	return j.order(o, plan, base, n)
}

// lengthTile is how many lengths of a key are looked at together: a line of the cache. Row by row each would be in a line of its
// own, and lines as far apart as a tensor's keys are get in each other's way.
const lengthTile = 16

// order copies n ids that lie row by row from element base on, and their weights, to the places of their keys, which are at.
func (j *joined) order(o *tensors, plan *mapPlan, base, n uint64) error {
	size := uint64(8)
	if o.ids32 {
		size = 4
	}
	ids := o.values[size*(base+n):][:size*n]
	copy(ids, o.values[size*base:])
	var weights []byte
	if len(o.weights) > 0 {
		weights = o.weights[4*(base+n):][:4*n]
		copy(weights, o.weights[4*base:])
	}
	keys := len(j.at)
	j.tile = room(&j.tile, keys*lengthTile)
	done, end := uint64(0), base+n
	for first := uint64(0); first < o.rows; first += lengthTile {
		rows := min(lengthTile, o.rows-first)
		for k := range keys {
			lengths := o.lengths[4*((uint64(plan.first)+uint64(k))*o.rows+first):][:4*rows]
			for r := range rows {
				j.tile[int(r)*keys+k] = le.Uint32(lengths[4*r:])
			}
		}
		for r := range int(rows) {
			at := j.at
			for k, length := range j.tile[r*keys:][:keys] {
				l, to := uint64(length), at[k]
				if l == 0 {
					continue
				}
				if l > n-done || l > end-to {
					return badSlice("the lengths of a map changed while they were read")
				}
				copy(o.values[size*to:], ids[size*done:][:size*l])
				if weights != nil {
					copy(o.weights[4*to:], weights[4*done:][:4*l])
				}
				done, at[k] = done+l, to+l
			}
		}
	}
	return nil
}

// putWeights writes weights from element at on.
func (o *tensors) putWeights(at uint64, weights []float32) {
	if len(o.weights) > 0 {
		for i, x := range weights {
			le.PutUint32(o.weights[4*(at+uint64(i)):], math.Float32bits(x))
		}
		o.bytes += 4 * uint64(len(weights))
	}
}
