package block

import "github.com/millrace/millrace/fpga/program"

// GraphValue is one value of a graph, with memory of its own. View may lie there, or in the block of a column.
//
// Lists of ids may have scores. They lie beside the ids, and no operator of a chain touches them: a chain keeps all ids
// of a list, its first ids or none, and CutScores does the same to the scores afterwards.
type GraphValue struct {
	View     Values
	Int64s   []int64
	Float32s []float32
	Float64s []float64
	Offsets  []uint32
	Data     []byte
	Valid    []byte
	Lengths  []int32

	Scores          []float32 // The scores that an operator made.
	keptScores      []float32 // Those that a chain kept of other scores.
	originalLengths []int32   // The lengths of lists with scores before a chain.

	// emptied are the inputs of a step of several inputs whose lists held nulls, and hold none any more, by their number.
	emptied []GraphValue

	// Inputs that are scalars and become lists, by their number.
	listLengths [program.MaxInputs][]int32
	listIDs     [program.MaxInputs][]int64
	listScores  [program.MaxInputs][]float32

	states []any // See StateOf.
}

// StateOf returns memory of type T that an operator of several inputs keeps with its value from block to block. It is
// the zero value at first.
func StateOf[T any](g *GraphValue) *T {
	for _, s := range g.states {
		if state, ok := s.(*T); ok {
			return state
		}
	}
	state := new(T)
	g.states = append(g.states, state)
	return state
}

// Size returns the size of the buffers that grow with the data, in bytes.
func (g *GraphValue) Size() int {
	n := 8*(cap(g.Int64s)+cap(g.Float64s)) + cap(g.Data) + cap(g.Valid) + 4*(cap(g.Float32s)+cap(g.Offsets)+
		cap(g.Lengths)+cap(g.Scores)+cap(g.keptScores)+cap(g.originalLengths))
	for k := range program.MaxInputs {
		n += 8*cap(g.listIDs[k]) + 4*(cap(g.listScores[k])+cap(g.listLengths[k]))
	}
	for i := range g.emptied {
		n += g.emptied[i].Size()
	}
	return n
}

// Release drops the references to the blocks of columns.
func (g *GraphValue) Release() {
	g.View = Values{}
	for i := range g.emptied {
		g.emptied[i].Release()
	}
}

// SetLists makes lists of ids the value.
func (g *GraphValue) SetLists(lengths []int32, ids []int64) {
	g.Lengths, g.Int64s = lengths, ids
	g.View = Values{Kind: program.Int64, Count: len(ids), Int64s: ids, List: true, Lengths: lengths,
		OwnsValues: true, OwnsLengths: true}
}

// SetTexts makes lists of strings of bytes the value.
func (g *GraphValue) SetTexts(lengths []int32, offsets []uint32, data []byte) {
	g.Lengths, g.Offsets, g.Data = lengths, offsets, data
	g.View = Values{Kind: program.Bytes, Count: len(offsets) - 1, Offsets: offsets, Data: data, List: true,
		Lengths: lengths, OwnsValues: true, OwnsLengths: true}
}

// SetReals makes lists of float32 numbers the value.
func (g *GraphValue) SetReals(lengths []int32, numbers []float32) {
	g.Lengths, g.Float32s = lengths, numbers
	g.View = Values{Kind: program.Float32, Count: len(numbers), Float32s: numbers, List: true, Lengths: lengths,
		OwnsValues: true, OwnsLengths: true}
}

// SetScores gives the ids of the value their scores.
func (g *GraphValue) SetScores(scores []float32) {
	g.Scores = scores
	g.View.Scores = scores
}

// BeginScalars makes room for an id a row. A row is null if one of the inputs is.
func (g *GraphValue) BeginScalars(rows int, inputs ...*Values) {
	g.Int64s = Resize(&g.Int64s, rows)
	g.View = Values{Kind: program.Int64, Count: rows, Int64s: g.Int64s, OwnsValues: true, OwnsValid: true}
	for _, in := range inputs {
		if in.Valid == nil {
			continue
		}
		if g.View.Valid == nil {
			g.Valid = append(g.Valid[:0], in.Valid[:rows]...)
			g.View.Valid = g.Valid
			continue
		}
		for i, ok := range in.Valid[:rows] {
			g.Valid[i] &= ok
		}
	}
}

// IDLists is a list of ids a row, one behind the other. It is the form in which units take them.
type IDLists struct {
	Lengths []int32
	IDs     []int64
}

// ListOf returns input i of a step as lists: a scalar is a list of one id, and a null an empty one.
func (g *GraphValue) ListOf(i int, v *Values) IDLists {
	if v.List {
		return IDLists{Lengths: v.Lengths, IDs: v.Int64s[:v.Count]}
	}
	lengths, ids := listsOfScalars(&g.listLengths[i], &g.listIDs[i], v.Int64s[:v.Count], v.Valid)
	return IDLists{Lengths: lengths, IDs: ids}
}

// ScoresOf returns input i of a step as lists of scores: a scalar is a list of one score, and a null an empty one.
func (g *GraphValue) ScoresOf(i int, v *Values) (lengths []int32, scores []float32) {
	if v.List {
		return v.Lengths, v.Float32s[:v.Count]
	}
	return listsOfScalars(&g.listLengths[i], &g.listScores[i], v.Float32s[:v.Count], v.Valid)
}

// listsOfScalars returns scalars as lists, in the memory of two buffers if they do not lie there already.
func listsOfScalars[T int64 | float32](lengthBuffer *[]int32, buffer *[]T, scalars []T, valid []byte) ([]int32, []T) {
	lengths := Resize(lengthBuffer, len(scalars))
	*lengthBuffer = lengths
	if valid == nil {
		for r := range lengths {
			lengths[r] = 1
		}
		return lengths, scalars
	}
	kept := Resize(buffer, len(scalars))[:0]
	for r, ok := range valid[:len(scalars)] {
		if lengths[r] = int32(ok); ok != 0 {
			kept = append(kept, scalars[r])
		}
	}
	*buffer = kept
	return lengths, kept
}

// NoteLengths remembers the lengths of lists with scores, which a chain may change.
func (g *GraphValue) NoteLengths(v *Values) {
	if v.Scores != nil {
		g.originalLengths = append(g.originalLengths[:0], v.Lengths...)
	}
}

// CutScores drops the scores of ids that a chain has dropped since NoteLengths.
func (g *GraphValue) CutScores(v *Values) {
	if v.Scores == nil || len(v.Scores) == v.Count {
		return
	}
	kept, at := Resize(&g.keptScores, v.Count)[:0], 0
	for row, length := range v.Lengths {
		kept = append(kept, v.Scores[at:at+int(length)]...)
		at += int(g.originalLengths[row])
	}
	g.keptScores, v.Scores = kept, kept
}

// EmptyNullLists returns lists with length 0 for every list of v that holds a null, as an operator of several inputs
// takes its input number k. v is left as it is.
func (g *GraphValue) EmptyNullLists(b *Buffers, k int, v *Values) *Values {
	for len(g.emptied) <= k {
		g.emptied = append(g.emptied, GraphValue{})
	}
	to, lists := &g.emptied[k], *v
	to.NoteLengths(&lists)
	b.EmptyNullLists(&lists)
	to.CutScores(&lists)
	to.KeepView(&lists)
	return &to.View
}

// KeepView makes v the value. What lies in the buffers of chains is copied to memory of the value.
func (g *GraphValue) KeepView(v *Values) {
	if v.OwnsValues {
		switch v.Kind {
		case program.Int64:
			g.Int64s = append(g.Int64s[:0], v.Int64s[:v.Count]...)
			v.Int64s = g.Int64s
		case program.Float32:
			g.Float32s = append(g.Float32s[:0], v.Float32s[:v.Count]...)
			v.Float32s = g.Float32s
		case program.Float64:
			g.Float64s = append(g.Float64s[:0], v.Float64s[:v.Count]...)
			v.Float64s = g.Float64s
		case program.Bytes:
			g.Offsets, g.Data = append(g.Offsets[:0], v.Offsets...), append(g.Data[:0], v.Data...)
			v.Offsets, v.Data = g.Offsets, g.Data
		}
	}
	if v.Valid != nil {
		g.Valid = append(g.Valid[:0], v.Valid[:v.Count]...)
		v.Valid = g.Valid
	}
	if v.OwnsLengths {
		g.Lengths = append(g.Lengths[:0], v.Lengths...)
		v.Lengths = g.Lengths
	}
	v.OwnsValues, v.OwnsValid, v.OwnsLengths = false, false, false // several steps and sinks read it
	g.View = *v
}
