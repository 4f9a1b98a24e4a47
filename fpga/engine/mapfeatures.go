package engine

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// mapFeatures holds the features of a block of a map: for each feature its values, row by row.
type mapFeatures struct {
	textNumbers   []int64  // They are the indexes of the keys of entries, in a map whose keys are text.
	entryNumbers  []uint32 // Keys x rows, for lists and bytes: the number of a row's entry for a key, plus 1; 0: none.
	elementStarts []uint32 // They are where an entry's list begins; one more than there are entries.
	scoredEntries []uint32 // entryNumbers of one feature, without lists that hold a null score

	// The values: of a map to numbers, keys x rows; of a map to lists or bytes, those of the current feature.
	int64s          []int64
	float32s        []float32
	float64s        []float64
	bytes           gatheredBytes
	valid           []byte
	lengths         []int32
	originalLengths []int32   // lengths before the operators
	scores          []float32 // Every element before the operators has one.
	convertedScores []float32 // the block's scores, if they are not float32 in the file

}

// BufferBytes returns the size of the buffers that grow with the data.
func (m *mapFeatures) bufferBytes() int {
	words := cap(m.entryNumbers) + cap(m.elementStarts) + cap(m.scoredEntries) + cap(m.float32s) + cap(m.lengths) +
		cap(m.originalLengths) + cap(m.scores) + cap(m.convertedScores)
	doubles := cap(m.textNumbers) + cap(m.int64s) + cap(m.float64s)
	return 4*words + 8*doubles + cap(m.valid) + m.bytes.bufferBytes()
}

// writeMapBlock makes the features of a block of n rows from the map's leaves, and writes them to the tensors. row is
// the mini-batch's row that the block begins with, and mapStart is the element of kjt.values at which the map's values
// begin. ok is false if the output lacks room. leaf is the leaf that an error is about.
func (x *executor) writeMapBlock(plan *mapPlan, row uint64, n int, mapStart uint64) (ok bool, leaf int, err error) {
	reader := &x.mapReader
	clock := x.ReadClock()
	if leaf, err := reader.checkLeaves(); err != nil {
		return false, leaf, reader.leaves[leaf].ErrorAtCursor(err)
	}
	keys, values := &reader.leaves[0].Block, &reader.leaves[1].Block
	list := reader.leaves[1].Column.List
	switch {
	case list:
		reader.findEntries(plan, n)
		reader.findElementStarts(values.Inner)
	case reader.leaves[1].Column.Kind == program.Bytes:
		reader.findEntries(plan, n)
	default:
		reader.spreadNumbers(plan, values, n)
	}
	if plan.takesScores {
		reader.convertScores(&reader.leaves[2].Block)
	}
	x.RecordRun(program.UnitMap, clock, keys.Values())

	x.staged.Begin(x.output.HasWeights())
	for i := range plan.picks {
		pick := &plan.picks[i]
		if list {
			err = x.runListFeature(pick, row, values, n)
		} else {
			err = x.runScalarFeature(pick, row, values, n)
		}
		if err != nil {
			return false, 1, reader.leaves[1].ErrorAtCursor(err)
		}
		// Many sinks may take one long list. Ids that the output has no room for are not made.
		if need := x.output.Written + uint64(len(x.staged.IDs)); !x.output.Fixed && need > x.output.Capacity {
			reader.leaves[1].StopEarly(program.MoreOutput, need)
			return false, 1, nil
		}
	}
	if plan.keys.Count == 0 || x.output.Fixed {
		return true, 0, nil
	}
	ok, err = x.stageRows(&plan.columnGroup, row, n, mapStart)
	return ok, 1, err
}

// checkLeaves checks that all leaves have the same number of entries in every row, and that scores have as many
// elements as ids.
func (m *mapReader) checkLeaves() (leaf int, err error) {
	keys := &m.leaves[0].Block
	for i := 1; i < len(m.leaves); i++ {
		b := &m.leaves[i].Block
		if !slices.Equal(b.Lengths, keys.Lengths) {
			return i, failure.Page("another number of entries than the map has keys")
		}
		if i == 2 && !slices.Equal(b.Inner, m.leaves[1].Block.Inner) {
			return i, failure.Page("another number of scores than of ids")
		}
	}
	return 0, nil
}

// findEntries finds the entry of each key of the plan in each of n rows. If a row has several entries with one key,
// the last one counts. Entries whose key is null are skipped.
func (m *mapReader) findEntries(plan *mapPlan, n int) {
	b := &m.leaves[0].Block
	m.entryNumbers = block.Resize(&m.entryNumbers, plan.distinctKeys*n)
	clear(m.entryNumbers)
	keys, valid := plan.numbersOf(b, &m.textNumbers), b.Valid
	if b.Nulls == 0 {
		valid = nil
	}
	e := 0
	for r, l := range b.Lengths {
		for end := e + int(l); e < end; e++ {
			index := plan.table.indexOf(keys[e])
			if index == 0 || valid != nil && valid[e] == 0 {
				continue
			}
			m.entryNumbers[int(index-1)*n+r] = uint32(e) + 1
		}
	}
}

// findElementStarts finds where each entry's elements begin.
func (m *mapReader) findElementStarts(inner []int32) {
	m.elementStarts = startsOf(&m.elementStarts, inner)
}

// startsOf returns, in the memory of buffer, where each of the lists begins whose lengths are given, and where the last
// one ends.
func startsOf(buffer *[]uint32, lengths []int32) []uint32 {
	starts := block.Resize(buffer, len(lengths)+1)
	at := uint32(0)
	for i, l := range lengths {
		starts[i] = at
		at += uint32(l)
	}
	starts[len(lengths)] = at
	return starts
}

// convertScores converts the block's scores to float32.
func (m *mapReader) convertScores(b *decoder.Block) {
	numbersAsFloat32(&m.convertedScores, b)
}

// numbersAsFloat32 returns the block's numbers as float32. Numbers of another type are converted into the memory of
// buffer.
func numbersAsFloat32(buffer *[]float32, b *decoder.Block) []float32 {
	switch b.Kind {
	case format.KindFloat32:
		return b.F32
	case format.KindFloat64:
		*buffer = block.Resize(buffer, len(b.F64))
		convert.Float64ToFloat32(*buffer, b.F64)
	default:
		*buffer = block.Resize(buffer, len(b.I64))
		convert.Int64ToFloat32(*buffer, b.I64)
	}
	return *buffer
}

// scoreValues returns the block's scores as float32.
func (m *mapReader) scoreValues(b *decoder.Block) []float32 {
	if b.Kind == format.KindFloat32 {
		return b.F32
	}
	return m.convertedScores
}

// spreadNumbers puts the numbers of n rows at the places of their keys, column by column, and sets valid: a byte for
// each place, 1 if the place has a number. If a row has several entries with one key, the last one counts. Entries
// whose key is null are skipped.
func (m *mapReader) spreadNumbers(plan *mapPlan, b *decoder.Block, n int) {
	features, size := &m.mapFeatures, plan.distinctKeys*n
	features.valid = block.Resize(&features.valid, size)
	clear(features.valid)
	keys := &m.leaves[0].Block
	numbers := plan.numbersOf(keys, &m.textNumbers)
	switch b.Kind {
	case format.KindFloat32:
		features.float32s = block.Resize(&features.float32s, size)
		spreadByKey(plan, keys, numbers, b, features.float32s, b.F32, features.valid, n)
	case format.KindFloat64:
		features.float64s = block.Resize(&features.float64s, size)
		spreadByKey(plan, keys, numbers, b, features.float64s, b.F64, features.valid, n)
	default:
		features.int64s = block.Resize(&features.int64s, size)
		spreadByKey(plan, keys, numbers, b, features.int64s, b.I64, features.valid, n)
	}
}

// spreadByKey is spreadNumbers for one kind of values. numbers are the keys as the plan's table knows them.
func spreadByKey[T any](plan *mapPlan, keys *decoder.Block, numbers []int64, values *decoder.Block, to, from []T,
	valid []byte, n int) {
	clear(to) // a null holds 0, as in a decoded block
	from = from[:len(numbers)]
	e := 0
	for r, l := range keys.Lengths {
		for end := e + int(l); e < end; e++ {
			index := plan.table.indexOf(numbers[e])
			if index == 0 || keys.Nulls > 0 && keys.Valid[e] == 0 {
				continue
			}
			at := int(index-1)*n + r
			to[at], valid[at] = from[e], 1
			if values.Nulls > 0 {
				valid[at] = values.Valid[e]
			}
		}
	}
}

// scalarValues returns the values of a feature of a map to numbers or to bytes.
func (m *mapReader) scalarValues(pick *featurePick, b *decoder.Block, n int) block.Values {
	at := pick.keyIndex * n
	v := block.Values{Kind: m.leaves[1].Column.Kind, Count: n, OwnsValues: pick.lastOfKey}
	if v.Kind == program.Bytes {
		m.gatherBytes(m.entryNumbers[at:][:n], b, &v)
		return v
	}
	switch v.Kind {
	case program.Int64:
		v.Int64s = m.int64s[at:][:n]
	case program.Float32:
		v.Float32s = m.float32s[at:][:n]
	case program.Float64:
		v.Float64s = m.float64s[at:][:n]
	}
	if valid := m.valid[at:][:n]; bytes.IndexByte(valid, 0) >= 0 {
		v.Valid = valid
	}
	return v
}

// gatherBytes sets v to the values of entries of a map to bytes: to a null where there is no entry.
func (m *mapFeatures) gatherBytes(entries []uint32, b *decoder.Block, v *block.Values) {
	m.valid = block.Resize(&m.valid, len(entries))
	for r, e := range entries {
		m.valid[r] = 0
		if e != 0 && (b.Nulls == 0 || b.Valid[e-1] != 0) {
			m.valid[r] = 1
		}
	}
	m.bytes.gatherEntries(b, entries, m.valid, v)
	if bytes.IndexByte(m.valid, 0) >= 0 {
		v.Valid = m.valid
	}
}

// runScalarFeature runs one feature of a map to numbers or to bytes through its chain and writes it. b holds the map's
// values. Where the feature's ids are appended to those of other keys, it adds them to the staged ids instead.
func (x *executor) runScalarFeature(pick *featurePick, row uint64, b *decoder.Block, n int) error {
	v := &x.values
	*v = x.mapReader.scalarValues(pick, b, n)
	x.buffers.Final = block.Destination{}
	switch {
	case pick.Tensor == program.ToDense:
		x.buffers.Final.Dense = x.output.DenseDestination(uint64(pick.Index), row, n)
	case pick.Tensor == program.ToSparse && x.output.Fixed:
		x.buffers.Final = x.output.IDDestination(x.output.ScalarIndex(uint64(pick.Index), row), n)
	}
	if err := x.runChain(pick.chain, v); err != nil {
		pick.LocateAbsentKey(err, row)
		return failure.InRows(row, n, err)
	}
	if pick.Tensor != program.ToSparse || x.output.Fixed {
		return x.output.StoreScalars(&pick.Place, row, v)
	}
	x.staged.AddScalars(v)
	return nil
}

// runListFeature runs one feature of a map to lists through its chain and adds its ids to those of other keys.
func (x *executor) runListFeature(pick *featurePick, row uint64, b *decoder.Block, n int) error {
	clock := x.ReadClock()
	reader := &x.mapReader
	features := &reader.mapFeatures
	entries := features.entryNumbers[pick.keyIndex*n:][:n]
	v := &x.values
	*v = block.Values{Kind: reader.leaves[1].Column.Kind, List: true, OwnsValues: true, OwnsValid: true,
		OwnsLengths: true}
	var scores []float32
	var scoreValid []byte
	if pick.takesScores {
		s := &reader.leaves[2].Block
		if scores = reader.scoreValues(s); s.Nulls > 0 {
			scoreValid = s.Valid
		}
	}
	if scoreValid != nil {
		// another pick may take the same key without scores
		features.scoredEntries = append(features.scoredEntries[:0], entries...)
		entries = features.scoredEntries
	}
	features.lengths = block.Resize(&features.lengths, n)
	for r, entry := range entries {
		features.lengths[r] = 0
		if entry == 0 {
			continue
		}
		from, to := features.elementStarts[entry-1], features.elementStarts[entry]
		if scoreValid != nil && bytes.IndexByte(scoreValid[from:to], 0) >= 0 {
			entries[r] = 0
			continue
		}
		features.lengths[r] = int32(to - from)
		v.Count += int(to - from)
	}
	switch v.Kind {
	case program.Int64:
		v.Int64s = gatherLists(&features.int64s, b.I64, entries, features.elementStarts, v.Count)
	case program.Float32:
		v.Float32s = gatherLists(&features.float32s, b.F32, entries, features.elementStarts, v.Count)
	case program.Float64:
		v.Float64s = gatherLists(&features.float64s, b.F64, entries, features.elementStarts, v.Count)
	case program.Bytes:
		features.bytes.gatherLists(b, entries, features.elementStarts, v)
	}
	if b.Nulls > 0 {
		v.Valid = gatherLists(&features.valid, b.Valid, entries, features.elementStarts, v.Count)
		if bytes.IndexByte(v.Valid, 0) < 0 {
			v.Valid = nil
		}
	}
	if pick.takesScores {
		gatherLists(&features.scores, scores, entries, features.elementStarts, v.Count)
		features.originalLengths = append(features.originalLengths[:0], features.lengths...)
	}
	v.Lengths = features.lengths
	x.RecordRun(program.UnitMap, clock, v.Count)
	x.buffers.Final = block.Destination{}
	if err := x.runChain(pick.chain, v); err != nil {
		pick.LocateAbsentKey(err, row)
		return failure.InRows(row, n, err)
	}
	if !pick.takesScores {
		x.staged.AddLists(v, nil)
		return nil
	}
	// Operators keep the first elements of a list, all of them or none.
	kept, from := features.scores[:0], 0
	for r, l := range v.Lengths[:n] {
		kept = append(kept, features.scores[from:from+int(l)]...)
		from += int(features.originalLengths[r])
	}
	x.staged.AddLists(v, kept)
	return nil
}

// gatherLists copies the lists that entries names to *to, one behind the other; they have n elements together. An
// entry is the number of a list plus 1, or 0 for none.
func gatherLists[T any](to *[]T, from []T, entries, starts []uint32, n int) []T {
	dst := block.Resize(to, n)[:0]
	for _, e := range entries {
		if e != 0 {
			dst = append(dst, from[starts[e-1]:starts[e]]...)
		}
	}
	*to = dst
	return dst
}
