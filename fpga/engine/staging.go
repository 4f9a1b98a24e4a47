package engine

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
)

// The ids of a map's keys are made row by row, and a keyed jagged tensor has them key by key. Until the mini-batch's
// last row they lie row by row in the output, behind what was written before; orderByKey then puts them in order.
// Nothing else is kept between slices.

// mapValuesStart returns the element of kjt.values at which the map's values begin. The lengths in the output say how
// many ids the earlier tasks of the mini-batch have written.
func (x *executor) mapValuesStart(keys keyRun, t *program.Task) (mapStart uint64, err error) {
	mapStart = x.output.written
	if x.output.fixed || keys.count == 0 || t.Row == 0 {
		return mapStart, nil
	}
	sum := uint64(0)
	for k := range uint64(keys.count) {
		lengths := x.output.lengths[4*(uint64(keys.first)+k)*x.output.rows:]
		for r := range uint64(t.Row) {
			sum += uint64(littleEndian.Uint32(lengths[4*r:]))
		}
	}
	if sum > mapStart {
		return 0, sliceError("%d values lie in the rows before %d, %d were written", sum, t.Row, mapStart)
	}
	return mapStart - sum, nil
}

// stageRows writes lengths, and writes ids and weights behind those of the rows before, row by row. ok is false if the
// output lacks room for them or for putting them in order; the task's state then says how much is needed.
func (x *executor) stageRows(group *columnGroup, row uint64, n int, mapStart uint64) (ok bool, err error) {
	clock := x.readClock()
	reader, o, keys := &x.mapReader, &x.output, group.keys
	features := &reader.mapFeatures
	end := o.written + uint64(len(features.ids))
	need := end
	if keys.count > 1 {
		need += end - mapStart
	}
	if need > o.capacity {
		reader.scans[group.valuesLeaf].stopEarly(program.MoreOutput, need)
		return false, nil
	}
	for k := range keys.count {
		copy(o.lengths[4*((uint64(keys.first)+uint64(k))*o.rows+row):], bytesOf(features.counts[k*n:][:n]))
	}
	o.bytesWritten += 4 * uint64(keys.count*n)
	ids, weights := features.ids, features.weights
	if keys.count > 1 {
		ids, weights = features.orderByRow(keys.count, n)
	}
	if err := o.storeIDs(o.written, row, &block.Values{Int64s: ids}, len(ids)); err != nil {
		return false, err
	}
	o.storeWeights(o.written, weights)
	o.written = end
	x.recordRun(program.UnitMap, clock, len(ids))
	return true, nil
}

// orderByRow puts the ids, which lie key by key, and their weights in the order of rows.
func (m *mapFeatures) orderByRow(keys, n int) ([]int64, []float32) {
	m.keyOffsets = block.Resize(&m.keyOffsets, keys)
	at := uint64(0)
	for k := range keys {
		m.keyOffsets[k] = at
		for _, l := range m.counts[k*n:][:n] {
			at += uint64(l)
		}
	}
	m.rowIDs, m.rowWeights = block.Resize(&m.rowIDs, len(m.ids))[:0], block.Resize(&m.rowWeights, len(m.weights))[:0]
	for r := range n {
		for k := range keys {
			l := uint64(m.counts[k*n+r])
			if l == 0 {
				continue
			}
			from := m.keyOffsets[k]
			m.keyOffsets[k] = from + l
			m.rowIDs = append(m.rowIDs, m.ids[from:from+l]...)
			if len(m.weights) > 0 {
				m.rowWeights = append(m.rowWeights, m.weights[from:from+l]...)
			}
		}
	}
	return m.rowIDs, m.rowWeights
}

// orderByKey puts a map's values, which lie row by row, in the order of keys: it copies them behind themselves and from
// there to their places. It checks the lengths as it reads them, because they lie in memory that the host can write.
func (x *executor) orderByKey(keys keyRun, mapStart uint64) error {
	o, features := &x.output, &x.mapReader.mapFeatures
	n := o.written - mapStart
	if keys.count < 2 || n == 0 {
		return nil
	}
	if o.written+n > o.capacity {
		return sliceError("no room to put %d values of a map or graph in order", n)
	}
	features.keyOffsets = block.Resize(&features.keyOffsets, keys.count)
	at := mapStart
	for k := range features.keyOffsets {
		features.keyOffsets[k] = at
		lengths := o.lengths[4*(uint64(keys.first)+uint64(k))*o.rows:]
		for r := range o.rows {
			at += uint64(littleEndian.Uint32(lengths[4*r:]))
		}
	}
	if at != o.written {
		return sliceError("the lengths of a map or graph sum to %d, %d values were written", at-mapStart, n)
	}
	return features.moveToKeys(o, keys.first, mapStart, n)
}

// lengthTileRows is how many lengths of a key are read together: a line of the cache. Read row by row, each length
// would be in a line of its own, and the lines of all keys fall into the same sets of the cache.
const lengthTileRows = 16

// moveToKeys copies n ids that lie row by row from element mapStart on, and their weights, to the places of their keys,
// which are in keyOffsets.
func (m *mapFeatures) moveToKeys(o *tensors, firstKey uint32, mapStart, n uint64) error {
	size := uint64(8)
	if o.ids32 {
		size = 4
	}
	ids := o.values[size*(mapStart+n):][:size*n]
	copy(ids, o.values[size*mapStart:])
	var weights []byte
	if len(o.weights) > 0 {
		weights = o.weights[4*(mapStart+n):][:4*n]
		copy(weights, o.weights[4*mapStart:])
	}
	keys := len(m.keyOffsets)
	m.lengthTile = block.Resize(&m.lengthTile, keys*lengthTileRows)
	done, end := uint64(0), mapStart+n
	for first := uint64(0); first < o.rows; first += lengthTileRows {
		rows := min(lengthTileRows, o.rows-first)
		for k := range keys {
			lengths := o.lengths[4*((uint64(firstKey)+uint64(k))*o.rows+first):][:4*rows]
			for r := range rows {
				m.lengthTile[int(r)*keys+k] = littleEndian.Uint32(lengths[4*r:])
			}
		}
		for r := range int(rows) {
			at := m.keyOffsets
			for k, length := range m.lengthTile[r*keys:][:keys] {
				l, to := uint64(length), at[k]
				if l == 0 {
					continue
				}
				if l > n-done || l > end-to {
					return sliceError("the lengths of a map or graph changed while they were read")
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

// storeWeights writes weights from element at on.
func (o *tensors) storeWeights(at uint64, weights []float32) {
	if len(o.weights) > 0 {
		for i, x := range weights {
			littleEndian.PutUint32(o.weights[4*(at+uint64(i)):], math.Float32bits(x))
		}
		o.bytesWritten += 4 * uint64(len(weights))
	}
}
