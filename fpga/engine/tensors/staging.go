package tensors

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
)

// The ids of a map's keys are made row by row, and a keyed jagged tensor has them key by key. Until the mini-batch's
// last row they lie row by row in the output, behind what was written before; OrderByKey then puts them in order.
// Nothing else is kept between slices.

// Staging holds the ids of the keys of a map or a graph for the rows that are written together, one key behind the
// other.
type Staging struct {
	weighted   bool    // Every id has a weight.
	IDs        []int64 // They lie key by key.
	weights    []float32
	counts     []int32 // They are the numbers of ids, by key and row.
	rowIDs     []int64 // They are the ids in the order of rows.
	rowWeights []float32
	keyOffsets []uint64 // They are where the next ids of each key lie or go.
	lengthTile []uint32 // They are the lengths of lengthTileRows rows, row by row.
}

// Begin drops the ids. weighted says whether ids have weights.
func (g *Staging) Begin(weighted bool) {
	g.weighted, g.IDs, g.weights, g.counts = weighted, g.IDs[:0], g.weights[:0], g.counts[:0]
}

// BufferBytes returns the size of the buffers.
func (g *Staging) BufferBytes() int {
	return 8*(cap(g.IDs)+cap(g.rowIDs)+cap(g.keyOffsets)) +
		4*(cap(g.weights)+cap(g.counts)+cap(g.rowWeights)+cap(g.lengthTile))
}

// AddScalars adds a row's id, or none if it is null, for each row of v.
func (g *Staging) AddScalars(v *block.Values) {
	for r, id := range v.Int64s[:v.Count] {
		there := v.Valid == nil || v.Valid[r] != 0
		if there {
			g.IDs = append(g.IDs, id)
			g.counts = append(g.counts, 1)
		} else {
			g.counts = append(g.counts, 0)
		}
	}
	g.addUnitWeights()
}

// AddLists adds the ids of each row of v, with their weights; nil means that each id weighs 1.
func (g *Staging) AddLists(v *block.Values, weights []float32) {
	g.IDs = append(g.IDs, v.Int64s[:v.Count]...)
	g.counts = append(g.counts, v.Lengths...)
	g.weights = append(g.weights, weights...)
	g.addUnitWeights()
}

// addUnitWeights gives weight 1 to ids that have no weight yet.
func (g *Staging) addUnitWeights() {
	if g.weighted {
		for len(g.weights) < len(g.IDs) {
			g.weights = append(g.weights, 1)
		}
	}
}

// ValuesStart returns the element of kjt.values at which the values of the keys of a map or a graph begin. The lengths
// in the output say how many ids were written for the mini-batch's rows before a row.
func (o *Output) ValuesStart(keys Keys, row uint32) (mapStart uint64, err error) {
	mapStart = o.Written
	if o.Fixed || keys.Count == 0 || row == 0 {
		return mapStart, nil
	}
	sum := uint64(0)
	for k := range uint64(keys.Count) {
		lengths := o.lengths[4*(uint64(keys.first)+k)*o.rows:]
		for r := range uint64(row) {
			sum += uint64(littleEndian.Uint32(lengths[4*r:]))
		}
	}
	if sum > mapStart {
		return 0, failure.Slice("%d values lie in the rows before %d, %d were written", sum, row, mapStart)
	}
	return mapStart - sum, nil
}

// StoreStaged writes lengths, and writes the staged ids and weights of n rows behind those of the rows before, row by
// row. If the output lacks room for them or for putting them in order, need is the number of elements that it needs,
// and nothing is written.
func (o *Output) StoreStaged(g *Staging, keys Keys, row uint64, n int, mapStart uint64) (need uint64, err error) {
	end := o.Written + uint64(len(g.IDs))
	need = end
	if keys.Count > 1 {
		need += end - mapStart
	}
	if need > o.Capacity {
		return need, nil
	}
	for k := range keys.Count {
		copy(o.lengths[4*((uint64(keys.first)+uint64(k))*o.rows+row):], bytesOf(g.counts[k*n:][:n]))
	}
	o.BytesWritten += 4 * uint64(keys.Count*n)
	ids, weights := g.IDs, g.weights
	if keys.Count > 1 {
		ids, weights = g.orderByRow(keys.Count, n)
	}
	if err := o.storeIDs(o.Written, row, &block.Values{Int64s: ids}, len(ids)); err != nil {
		return 0, err
	}
	o.storeWeights(o.Written, weights)
	o.Written = end
	return 0, nil
}

// orderByRow puts the ids, which lie key by key, and their weights in the order of rows.
func (g *Staging) orderByRow(keys, n int) ([]int64, []float32) {
	g.keyOffsets = block.Resize(&g.keyOffsets, keys)
	at := uint64(0)
	for k := range keys {
		g.keyOffsets[k] = at
		for _, l := range g.counts[k*n:][:n] {
			at += uint64(l)
		}
	}
	g.rowIDs, g.rowWeights = block.Resize(&g.rowIDs, len(g.IDs))[:0], block.Resize(&g.rowWeights, len(g.weights))[:0]
	for r := range n {
		for k := range keys {
			l := uint64(g.counts[k*n+r])
			if l == 0 {
				continue
			}
			from := g.keyOffsets[k]
			g.keyOffsets[k] = from + l
			g.rowIDs = append(g.rowIDs, g.IDs[from:from+l]...)
			if len(g.weights) > 0 {
				g.rowWeights = append(g.rowWeights, g.weights[from:from+l]...)
			}
		}
	}
	return g.rowIDs, g.rowWeights
}

// OrderByKey puts a map's values, which lie row by row, in the order of keys: it copies them behind themselves and from
// there to their places. It checks the lengths as it reads them, because they lie in memory that the host can write.
func (o *Output) OrderByKey(g *Staging, keys Keys, mapStart uint64) error {
	n := o.Written - mapStart
	if keys.Count < 2 || n == 0 {
		return nil
	}
	if o.Written+n > o.Capacity {
		return failure.Slice("no room to put %d values of a map or graph in order", n)
	}
	g.keyOffsets = block.Resize(&g.keyOffsets, keys.Count)
	at := mapStart
	for k := range g.keyOffsets {
		g.keyOffsets[k] = at
		lengths := o.lengths[4*(uint64(keys.first)+uint64(k))*o.rows:]
		for r := range o.rows {
			at += uint64(littleEndian.Uint32(lengths[4*r:]))
		}
	}
	if at != o.Written {
		return failure.Slice("the lengths of a map or graph sum to %d, %d values were written", at-mapStart, n)
	}
	return g.moveToKeys(o, keys.first, mapStart, n)
}

// lengthTileRows is how many lengths of a key are read together: a line of the cache. Read row by row, each length
// would be in a line of its own, and the lines of all keys fall into the same sets of the cache.
const lengthTileRows = 16

// moveToKeys copies n ids that lie row by row from element mapStart on, and their weights, to the places of their keys,
// which are in keyOffsets.
func (g *Staging) moveToKeys(o *Output, firstKey uint32, mapStart, n uint64) error {
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
	keys := len(g.keyOffsets)
	g.lengthTile = block.Resize(&g.lengthTile, keys*lengthTileRows)
	done, end := uint64(0), mapStart+n
	for first := uint64(0); first < o.rows; first += lengthTileRows {
		rows := min(lengthTileRows, o.rows-first)
		for k := range keys {
			lengths := o.lengths[4*((uint64(firstKey)+uint64(k))*o.rows+first):][:4*rows]
			for r := range rows {
				g.lengthTile[int(r)*keys+k] = littleEndian.Uint32(lengths[4*r:])
			}
		}
		for r := range int(rows) {
			at := g.keyOffsets
			for k, length := range g.lengthTile[r*keys:][:keys] {
				l, to := uint64(length), at[k]
				if l == 0 {
					continue
				}
				if l > n-done || l > end-to {
					return failure.Slice("the lengths of a map or graph changed while they were read")
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
func (o *Output) storeWeights(at uint64, weights []float32) {
	if len(o.weights) > 0 {
		for i, x := range weights {
			littleEndian.PutUint32(o.weights[4*(at+uint64(i)):], math.Float32bits(x))
		}
		o.BytesWritten += 4 * uint64(len(weights))
	}
}
