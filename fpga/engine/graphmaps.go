package engine

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// graphMap is a map among the columns of a graph: of each block it makes the features that the graph takes.
type graphMap struct {
	keys, values int // leaves of the group
	scores       int // leaf of the group; -1: none
	list         bool
	pickedKeys
	features []graphFeature
}

// graphFeature is a feature of a map, and the place of its value among those of a block.
type graphFeature struct {
	value, keyIndex int
	scored          bool
}

// graphMapValues holds the features of a map for the rows of a block.
type graphMapValues struct {
	textNumbers   []int64   // They are the indexes of the keys of entries, in a map whose keys are text.
	entries       []uint32  // by key and row: number of the row's entry plus 1; 0: none
	elementStarts []uint32  // They are where an entry's list begins; one more than there are entries.
	kept          []uint32  // entries of one feature, without lists that hold a null score
	scores        []float32 // They are the block's, and may lie in converted.
	converted     []float32
	features      []graphFeatureValues
}

// graphFeatureValues is the memory of one feature.
type graphFeatureValues struct {
	int64s           []int64
	float32s, scores []float32
	float64s         []float64
	bytes            gatheredBytes
	valid            []byte
	lengths          []int32
}

// BufferBytes returns the size of the buffers.
func (v *graphMapValues) bufferBytes() int {
	n := 8*cap(v.textNumbers) + 4*(cap(v.entries)+cap(v.elementStarts)+cap(v.kept)+cap(v.converted))
	for i := range v.features {
		f := &v.features[i]
		n += 8*(cap(f.int64s)+cap(f.float64s)) + 4*(cap(f.float32s)+cap(f.scores)+cap(f.lengths)) + cap(f.valid) +
			f.bytes.bufferBytes()
	}
	return n
}

// addMaps adds the maps among the columns of the graph.
func (p *graphPlan) addMaps(columns []program.Column) {
	for i := range columns {
		p.leafParts = append(p.leafParts, columns[i].MapLeaf)
		switch columns[i].MapLeaf {
		case program.MapKeys:
			p.maps = append(p.maps, graphMap{keys: i, values: i + 1, scores: -1, list: columns[i+1].List})
		case program.MapScores:
			p.maps[len(p.maps)-1].scores = i
		case program.MapValues:
			m := &p.maps[len(p.maps)-1]
			var indexes []int
			m.pickedKeys, indexes = newPickedKeys(columns[i].Picks, columns[m.keys].Kind == program.Bytes)
			for value, source := range p.sources {
				if source.Column == i {
					m.features = append(m.features, graphFeature{value, indexes[len(m.features)], source.Pick.Scored})
				}
			}
		}
	}
}

// pickFeatures makes the features of maps of a block of n rows. leaf is the leaf that an error is about.
func (x *executor) pickFeatures(p *graphPlan, n int) (leaf int, err error) {
	g := &x.graphValues
	for len(g.maps) < len(p.maps) {
		g.maps = append(g.maps, graphMapValues{})
	}
	for i := range p.maps {
		m, clock := &p.maps[i], x.ReadClock()
		if leaf, err := x.checkGraphMap(m); err != nil {
			return leaf, err
		}
		values := &g.maps[i]
		values.findEntries(m, &x.mapReader.leaves[m.keys].Block, n)
		values.elementStarts = startsOf(&values.elementStarts, x.mapReader.leaves[m.values].Block.Inner)
		if m.scores >= 0 {
			values.scores = numbersAsFloat32(&values.converted, &x.mapReader.leaves[m.scores].Block)
		}
		for len(values.features) < len(m.features) {
			values.features = append(values.features, graphFeatureValues{})
		}
		picked := 0
		for k := range m.features {
			v := values.gatherFeature(x, m, k, n)
			g.columns[m.features[k].value] = v
			picked += v.Count
		}
		x.RecordRun(program.UnitMap, clock, picked)
	}
	return 0, nil
}

// checkGraphMap checks that the leaves of a map have the same entries, and scores as many elements as ids.
func (x *executor) checkGraphMap(m *graphMap) (leaf int, err error) {
	leaves := x.mapReader.leaves
	keys, values := &leaves[m.keys].Block, &leaves[m.values].Block
	if !slices.Equal(values.Lengths, keys.Lengths) {
		return m.values, failure.Page("another number of entries than the map has keys")
	}
	if m.scores < 0 {
		return 0, nil
	}
	scores := &leaves[m.scores].Block
	switch {
	case !slices.Equal(scores.Lengths, keys.Lengths):
		return m.scores, failure.Page("another number of entries than the map has keys")
	case !slices.Equal(scores.Inner, values.Inner):
		return m.scores, failure.Page("another number of scores than of ids")
	}
	return 0, nil
}

// findEntries finds the entry of each key of the map in each of n rows. If a row has several entries with one key, the
// last one counts. Entries whose key is null are skipped.
func (v *graphMapValues) findEntries(m *graphMap, b *decoder.Block, n int) {
	v.entries = block.Resize(&v.entries, m.distinctKeys*n)
	clear(v.entries)
	keys := m.numbersOf(b, &v.textNumbers)
	e := 0
	for r, l := range b.Lengths {
		for end := e + int(l); e < end; e++ {
			if b.Nulls > 0 && b.Valid[e] == 0 {
				continue
			}
			if index := m.table.indexOf(keys[e]); index != 0 {
				v.entries[int(index-1)*n+r] = uint32(e) + 1
			}
		}
	}
}

// gatherFeature makes feature k of a map.
func (v *graphMapValues) gatherFeature(x *executor, m *graphMap, k, n int) block.Values {
	entries := v.entries[m.features[k].keyIndex*n:][:n]
	b, of := &x.mapReader.leaves[m.values].Block, &v.features[k]
	if !m.list {
		return of.gatherValues(b, x.mapReader.leaves[m.values].Column.Kind, entries)
	}
	var scores []float32
	if m.features[k].scored {
		s := &x.mapReader.leaves[m.scores].Block
		scores = v.scores
		if s.Nulls > 0 {
			entries = v.withoutNulls(entries, s.Valid)
		}
	}
	return of.gatherLists(b, x.mapReader.leaves[m.values].Column.Kind, entries, v.elementStarts, scores)
}

// withoutNulls returns entries without those whose elements are not all valid.
func (v *graphMapValues) withoutNulls(entries []uint32, valid []byte) []uint32 {
	v.kept = append(v.kept[:0], entries...)
	for r, e := range v.kept {
		if e != 0 && bytes.IndexByte(valid[v.elementStarts[e-1]:v.elementStarts[e]], 0) >= 0 {
			v.kept[r] = 0
		}
	}
	return v.kept
}

// gatherValues returns the values of the entries: a null where there is no entry.
func (f *graphFeatureValues) gatherValues(b *decoder.Block, kind program.Kind, entries []uint32) block.Values {
	n, whole := len(entries), true
	v := block.Values{Kind: kind, Count: n}
	f.valid = block.Resize(&f.valid, n)
	for r, e := range entries {
		f.valid[r] = 0
		if e != 0 && (b.Nulls == 0 || b.Valid[e-1] != 0) {
			f.valid[r] = 1
		}
		whole = whole && f.valid[r] != 0
	}
	if !whole {
		v.Valid = f.valid
	}
	switch kind {
	case program.Int64:
		v.Int64s = gatherEntries(&f.int64s, b.I64, entries, f.valid)
	case program.Float32:
		v.Float32s = gatherEntries(&f.float32s, b.F32, entries, f.valid)
	case program.Float64:
		v.Float64s = gatherEntries(&f.float64s, b.F64, entries, f.valid)
	case program.Bytes:
		f.bytes.gatherEntries(b, entries, f.valid, &v)
	}
	return v
}

// gatherEntries copies the numbers of the entries that are valid to *to, and 0 for others, as a decoded block has it.
func gatherEntries[T int64 | float32 | float64](to *[]T, from []T, entries []uint32, valid []byte) []T {
	dst := block.Resize(to, len(entries))
	for r, e := range entries {
		dst[r] = 0
		if valid[r] != 0 {
			dst[r] = from[e-1]
		}
	}
	*to = dst
	return dst
}

// gatherLists returns the lists of the entries, with their scores if there are some: a list without elements where
// there is no entry.
func (f *graphFeatureValues) gatherLists(b *decoder.Block, kind program.Kind, entries, starts []uint32,
	scores []float32) block.Values {
	v := block.Values{Kind: kind, List: true}
	f.lengths = block.Resize(&f.lengths, len(entries))
	for r, e := range entries {
		f.lengths[r] = 0
		if e != 0 {
			f.lengths[r] = int32(starts[e] - starts[e-1])
			v.Count += int(f.lengths[r])
		}
	}
	v.Lengths = f.lengths
	switch kind {
	case program.Int64:
		v.Int64s = gatherLists(&f.int64s, b.I64, entries, starts, v.Count)
	case program.Float32:
		v.Float32s = gatherLists(&f.float32s, b.F32, entries, starts, v.Count)
	case program.Float64:
		v.Float64s = gatherLists(&f.float64s, b.F64, entries, starts, v.Count)
	case program.Bytes:
		f.bytes.gatherLists(b, entries, starts, &v)
	}
	if b.Nulls > 0 {
		v.Valid = gatherLists(&f.valid, b.Valid, entries, starts, v.Count)
	}
	if scores != nil {
		v.Scores = gatherLists(&f.scores, scores, entries, starts, v.Count)
	}
	return v
}
