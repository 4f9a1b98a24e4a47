package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// addGraphs adds graphs over some of the columns to a program.
func addGraphs(rng *rand.Rand, p *program.Program, cols []testColumn, fields []uint16, risky bool) {
	keyed := 0
	for keyed < len(p.Columns) && (p.Columns[keyed].Part != program.NoPart || slices.ContainsFunc(p.Columns[keyed].Sinks,
		func(s program.Sink) bool { return s.To == program.ToSparse })) {
		keyed++
	}
	rest := slices.Clone(p.Columns[keyed:])
	p.Columns = p.Columns[:keyed]
	var restGraphs []program.Graph
	for range 1 + rng.IntN(2) {
		columns, graph, keys := randomGraph(rng, p, cols, fields, risky)
		switch {
		case len(columns) == 0:
		case keys:
			p.Columns, p.Graphs = append(p.Columns, columns...), append(p.Graphs, graph)
		default:
			rest, restGraphs = append(rest, columns...), append(restGraphs, graph)
		}
	}
	p.Columns, p.Graphs = append(p.Columns, rest...), append(p.Graphs, restGraphs...)
	if p.Output.Dense > 0 {
		p.Output.DenseType = program.DenseType(rng.IntN(2))
	}
}

// graphMaker makes a random graph.
type graphMaker struct {
	rng   *rand.Rand
	p     *program.Program
	risky bool
	graph program.Graph
	types []program.ValueType
	used  []bool
	keys  bool
}

// randomGraph makes the columns and the steps of a graph, and reports whether it feeds keys. There are no columns if
// none of cols fits.
func randomGraph(rng *rand.Rand, p *program.Program, cols []testColumn, fields []uint16, risky bool) ([]program.Column,
	program.Graph, bool) {
	m := &graphMaker{rng: rng, p: p, risky: risky}
	var columns []program.Column
	var from []*testColumn
	for range 1 + rng.IntN(3) {
		i := rng.IntN(len(cols))
		c := &cols[i]
		if c.list && p.Output.Fixed {
			continue
		}
		part := program.GraphNext
		if len(columns) == 0 {
			part = program.GraphFirst
		}
		column := program.Column{Name: c.name, Kind: c.kind(), List: c.list, Part: part}
		if fields != nil {
			column.Field = fields[i]
		}
		columns, from = append(columns, column), append(from, c)
		m.addValue(program.ValueType{Kind: c.kind(), List: c.list})
	}
	if len(columns) == 0 {
		return nil, m.graph, false
	}
	for i, c := range from {
		if rng.IntN(2) == 0 && m.addParts(uint32(i), c) {
			continue
		}
		if c.kind() != program.Int64 || rng.IntN(2) == 0 {
			if ops := randomChain(rng, c, program.Int64, rng.IntN(3) == 0, risky); len(ops) > 0 {
				m.addStep(program.Step{Inputs: []uint32{uint32(i)}, Ops: ops}, program.ValueType{Kind: program.Int64,
					List: c.list})
			}
		}
	}
	for i, c := range from {
		if c.kind() == program.Int64 && rng.IntN(3) == 0 { // scores
			m.addStep(program.Step{Inputs: []uint32{uint32(i)}, Ops: []program.Op{convert.Op{To: program.Float32}}},
				program.ValueType{Kind: program.Float32, List: c.list})
		}
	}
	m.addLengths(rng)
	for range 1 + rng.IntN(3) {
		m.addCombination()
	}
	for i, used := range m.used {
		if !used || rng.IntN(4) == 0 && m.types[i].Kind == program.Int64 {
			m.addSink(i)
		}
	}
	return columns, m.graph, m.keys
}

func (m *graphMaker) addValue(of program.ValueType) {
	m.types, m.used = append(m.types, of), append(m.used, false)
}

func (m *graphMaker) addStep(s program.Step, of program.ValueType) {
	for _, n := range s.Inputs {
		m.used[n] = true
	}
	m.graph.Steps = append(m.graph.Steps, s)
	m.addValue(of)
}

// addCombination adds a step of several inputs.
func (m *graphMaker) addCombination() {
	var inputs []uint32
	var types []program.ValueType
	if !slices.ContainsFunc(m.types, func(of program.ValueType) bool { return of.Kind == program.Int64 }) {
		return
	}
	for len(inputs) < 2 {
		n := m.rng.IntN(len(m.types))
		if m.types[n].Kind == program.Int64 {
			inputs, types = append(inputs, uint32(n)), append(types, m.types[n])
		}
	}
	o := cartesian.Op{MaxLength: 1 + m.rng.Int64N(1<<m.rng.IntN(8))}
	if m.risky {
		o.Overflow = cartesian.Overflow(m.rng.IntN(2))
	}
	var combine program.Combiner = o
	if m.rng.IntN(3) == 0 && !m.p.Output.Fixed {
		combine = idlisttransform.Op{}
	}
	if m.rng.IntN(3) == 0 && !m.p.Output.Fixed && m.addScores() {
		return
	}
	if call, ok := m.wasmStep(); ok && m.rng.IntN(3) == 0 {
		of, _ := call.Combine.Yield(m.typesOf(call.Inputs))
		m.addStep(call, of)
		return
	}
	if score, ok := m.scoreStep(); ok && m.rng.IntN(3) == 0 {
		m.addStep(score, program.ValueType{Kind: program.Float32})
		return
	}
	if m.rng.IntN(3) == 0 {
		if n, ok := m.crossInputs(); ok {
			inputs, types, combine = n, nil, hashcross.Op{Buckets: 1 + m.rng.Int64N(1<<(1+m.rng.IntN(40)))}
			for _, i := range n {
				types = append(types, m.types[i])
			}
		}
	}
	of, _ := combine.Yield(types)
	s := program.Step{Inputs: inputs, Combine: combine}
	for range m.rng.IntN(3) {
		switch m.rng.IntN(5) {
		case 0:
			s.Ops = append(s.Ops, sigridhash.Op{Salt: 3, Max: 1 << 20})
		case 1:
			s.Ops = append(s.Ops, positivemodulus.Op{M: 1000})
		case 2:
			s.Ops = append(s.Ops, fillnull.Op{Int: int64(m.rng.IntN(2))})
		case 3:
			if of.List {
				s.Ops = append(s.Ops, firstx.Op{N: 5})
			}
		case 4:
			if of.List {
				s.Ops = append(s.Ops, ngram.Op{N: 2, Mode: randomMode(m.rng, s.Ops)})
			}
		}
	}
	m.addStep(s, of)
}

// scoreStep returns a step that compares lists; ok is false if there are no scores for it.
func (m *graphMaker) scoreStep() (s program.Step, ok bool) {
	o := computescore.Op{Function: computescore.Function(m.rng.IntN(8))}
	if o.Function == computescore.Cosine && !(m.risky && m.rng.IntN(2) == 0) {
		o.ZeroNorm = computescore.ZeroNormZero
	}
	byKind := map[program.Kind][]uint32{}
	for i, of := range m.types {
		byKind[of.Kind] = append(byKind[of.Kind], uint32(i))
	}
	s.Combine = o
	for i, kind := range o.Function.Inputs() {
		values := byKind[kind]
		if kind == program.Float32 {
			// Other values than those made of the ids have other lengths, which is an error.
			values = values[:0:0]
			for _, n := range byKind[kind] {
				if m.risky || m.sameLengths(n, s.Inputs[i-1]) {
					values = append(values, n)
				}
			}
		}
		if len(values) == 0 {
			return s, false
		}
		s.Inputs = append(s.Inputs, values[m.rng.IntN(len(values))])
	}
	return s, true
}

// sameLengths reports whether two values have as many elements as each other in all rows where both have some: scalars,
// and a list and what one of its steps converted.
func (m *graphMaker) sameLengths(a, b uint32) bool {
	if !m.types[a].List && !m.types[b].List {
		return true
	}
	columns := uint32(len(m.types) - len(m.graph.Steps))
	if a < columns || !m.types[a].List {
		return false
	}
	if m.graph.Steps[a-columns].Combine == program.Combiner(scores.Op{}) {
		return m.graph.Steps[a-columns].Inputs[0] == b
	}
	return m.graph.Steps[a-columns].Combine == nil &&
		m.graph.Steps[a-columns].Inputs[0] == b && m.keepsLengths(m.graph.Steps[a-columns].Ops)
}

func (m *graphMaker) keepsLengths(ops []program.Op) bool {
	return len(ops) == 1 && ops[0] == program.Op(convert.Op{To: program.Float32})
}

// crossInputs returns 2 to 4 values that are scalars of ids; ok is false if there are none.
func (m *graphMaker) crossInputs() (inputs []uint32, ok bool) {
	var scalars []uint32
	for i, of := range m.types {
		if of == (program.ValueType{Kind: program.Int64}) {
			scalars = append(scalars, uint32(i))
		}
	}
	if len(scalars) == 0 {
		return nil, false
	}
	for range 2 + m.rng.IntN(3) {
		inputs = append(inputs, scalars[m.rng.IntN(len(scalars))])
	}
	return inputs, true
}

// addSink adds a sink of a value.
func (m *graphMaker) addSink(value int) {
	of, out := m.types[value], &m.p.Output
	fake := testColumn{physical: format.Int64, list: of.List}
	switch of.Kind {
	case program.Float32:
		fake.physical = format.Float
	case program.Float64:
		fake.physical = format.Double
	case program.Bytes:
		fake.physical = format.ByteArray
	}
	s := program.GraphSink{Value: uint32(value), Sink: program.Sink{To: program.ToSparse, Index: out.Keys}}
	if !of.List && m.rng.IntN(3) == 0 {
		s.Sink = program.Sink{To: program.ToDense, Index: out.Dense,
			Ops: randomChain(m.rng, &fake, program.Float32, true, m.risky)}
		out.Dense += oneHotAtTimes(m.rng, &fake, &s.Sink)
	} else {
		s.Sink.Ops = randomChain(m.rng, &fake, program.Int64, out.Fixed, m.risky)
		s.Scored = of.Scored && m.rng.IntN(4) > 0 && !slices.ContainsFunc(s.Sink.Ops, movesIDs)
		out.Weights = out.Weights || s.Scored
		if m.p.Source != program.Parquet {
			fillNoLists(s.Sink.Ops)
		}
		if out.IDs == program.IDs32 {
			s.Sink.Ops = append(s.Sink.Ops, positivemodulus.Op{M: 1 << 31})
		}
		out.Keys++
		m.keys = true
	}
	m.used[value] = true
	m.graph.Sinks = append(m.graph.Sinks, s)
}

// fillNoLists makes operators fit rows of text, whose lists have at most one value.
func fillNoLists(ops []program.Op) {
	for i, op := range ops {
		slice, ok := op.(listslice.Op)
		if length, err := slice.Length(); ok && err == nil && length > 1 {
			slice.Padded = false
			ops[i] = slice
		}
	}
}

// TestGraphsAreReference checks that the engine makes the same mini-batches of graphs as the reference, for any file,
// steps and rows, and for any windows and slices of the host.
func TestGraphsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		l := drawLayout(t, 250)
		batch := rapid.IntRange(1, 150).Draw(t, "batch")
		risky := rapid.IntRange(0, 5).Draw(t, "risky") == 0
		rng := rand.New(rand.NewPCG(seed, 5))
		cols := randomColumns(rng, rapid.IntRange(1, 4).Draw(t, "columns"), rows)
		data := writeFile(t, cols, l)
		f := readFooter(t, data)
		p := randomProgram(rng, cols, risky, l.groupRows >= rows)
		addGraphs(rng, p, cols, nil, risky)
		require.NoError(t, p.Validate(), p)
		block := rapid.SampledFrom([]int{1, 7, 64, 0}).Draw(t, "block")
		compareMiniBatches(t, p, f, data, compared{seed: seed, rows: rows, batch: batch, block: block}, rng)
	})
}

// TestTextGraphsAreReference checks the same for graphs over rows of text.
func TestTextGraphsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		lines := rapid.IntRange(1, 60).Draw(t, "lines")
		source := rapid.SampledFrom([]program.Source{program.CriteoTSV, program.CriteoBinary}).Draw(t, "source")
		batch := rapid.IntRange(1, 50).Draw(t, "batch")
		rng := rand.New(rand.NewPCG(seed, 6))
		p := criteoProgram(rng, source, true)
		p.Columns = slices.DeleteFunc(p.Columns, func(c program.Column) bool { return c.Field == 3 }) // of a slow logarithm
		renumber(p)
		var cols []testColumn
		var fields []uint16
		for f := range uint16(40) {
			cols, fields = append(cols, testColumn{name: fmt.Sprintf("field_%d", f), physical: format.Int64}), append(fields, f)
		}
		addGraphs(rng, p, cols, fields, false)
		require.NoError(t, p.Validate(), p)
		data := randomBinary(rng, lines)
		if source == program.CriteoTSV {
			p.Malformed = program.Malformed(rapid.IntRange(0, 2).Draw(t, "policy"))
			data = randomText(rng, lines, true, p.Malformed != program.MalformedFail)
		}
		ref, err := reference.NewText(p, data)
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: rapid.SampledFrom([]int{3, 0}).Draw(t, "block"),
			Modules: p.Modules}), p, nil, data, seed)
		for first := 0; first < int(ref.Rows()); first += batch {
			n := min(batch, int(ref.Rows())-first)
			want, err := ref.MiniBatch(int64(first), n)
			require.NoError(t, err)
			got, err := h.miniBatch(int64(first), n)
			require.NoError(t, err, p)
			requireSame(t, want, got)
		}
	})
}

// renumber gives the sinks of a program, of which columns were taken away, the numbers that are left.
func renumber(p *program.Program) {
	p.Output.Keys, p.Output.Dense = 0, 0
	for i := range p.Columns {
		for j := range p.Columns[i].Sinks {
			switch s := &p.Columns[i].Sinks[j]; s.To {
			case program.ToSparse:
				s.Index = p.Output.Keys
				p.Output.Keys++
			case program.ToDense:
				s.Index = p.Output.Dense
				p.Output.Dense++
			}
		}
	}
}

// crossProgram makes one key of the pairs of two columns of lists.
func crossProgram(o cartesian.Op) *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "a", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "b", Kind: program.Int64, List: true, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: o}},
			Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToSparse}}},
		}},
		Output: program.Output{Keys: 1},
	}
}

// longLists returns columns a and b, whose lists have n elements in each row.
func longLists(rows, n int) []testColumn {
	cols := []testColumn{{name: "a", physical: format.Int64, list: true}, {name: "b", physical: format.Int64, list: true}}
	for i := range cols {
		for r := range rows {
			list := make([]any, n)
			for k := range list {
				list[k] = int64(r*n + k)
			}
			cols[i].rows = append(cols[i].rows, list)
		}
	}
	return cols
}

// TestCartesianOverflow crosses lists of 10,000 ids: the ids are cut, or the slice fails and names the step.
func TestCartesianOverflow(t *testing.T) {
	const rows = 3
	cols := longLists(rows, 10_000)
	data := writeFile(t, cols, layout{groupRows: rows, batchRows: rows, pageBytes: 1 << 20, version: 1})
	f := readFooter(t, data)
	run := func(o cartesian.Op, e engine.Options) (*reference.Tensors, error) {
		h := newHost(engine.New(e), crossProgram(o), f, data, 1)
		h.wholeChunks = true
		return h.miniBatch(0, rows)
	}
	m, err := run(cartesian.Op{MaxLength: cartesian.MaxIDs}, engine.Options{})
	require.NoError(t, err)
	require.Equal(t, []int32{cartesian.MaxIDs, cartesian.MaxIDs, cartesian.MaxIDs}, m.Lengths)

	var bad *sliceFailure
	_, err = run(cartesian.Op{MaxLength: cartesian.MaxIDs, Overflow: cartesian.Fail}, engine.Options{})
	require.ErrorAs(t, err, &bad)
	require.Equal(t, program.BadData, bad.state)
	require.Contains(t, bad.message, `column "a": page 0`)
	require.Contains(t, bad.message, "cartesian: row 0 makes 10000 x 10000 ids, want at most 65536")

	// A row may have no more values than the engine takes for one.
	_, err = run(cartesian.Op{MaxLength: cartesian.MaxIDs}, engine.Options{MaxList: 20_000})
	require.ErrorAs(t, err, &bad)
	require.Equal(t, program.NoSupport, bad.state)
	require.Contains(t, bad.message, "a row of a graph with 85536 values, want at most 80000")
}

// TestGraphTasks checks slices whose tasks do not name all columns of a graph for the same rows.
func TestGraphTasks(t *testing.T) {
	cols := longLists(10, 3)
	data := writeFile(t, cols, layout{groupRows: 10, batchRows: 10, pageBytes: 1 << 20, version: 1})
	p := crossProgram(cartesian.Op{MaxLength: 9})
	h := newHost(engine.New(engine.Options{}), p, readFooter(t, data), data, 1)
	h.wholeChunks = true
	_, err := h.miniBatch(0, 10)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		edit func(s *program.Slice)
		want string
	}{
		"the first alone":  {func(s *program.Slice) { s.Tasks = s.Tasks[:1] }, "have not all one"},
		"the second alone": {func(s *program.Slice) { s.Tasks = s.Tasks[1:] }, "has no task before"},
		"in another order": {func(s *program.Slice) { slices.Reverse(s.Tasks) }, "has no task before"},
		"other rows": {func(s *program.Slice) { s.Tasks[1].Count = 9 },
			`rows 0+9, read together with column 0 in rows 0+10`},
	} {
		t.Run(name, func(t *testing.T) {
			h.editSlice = c.edit
			var bad *sliceFailure
			_, err := h.miniBatch(0, 10)
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.BadSlice, bad.state)
			require.Contains(t, bad.message, c.want)
		})
	}
}

// TestNullsInListsOfSteps checks a mini-batch that is written down: what takes a step's value may fill the nulls that
// the step made, and for a step of several inputs a list that holds one is empty.
func TestNullsInListsOfSteps(t *testing.T) {
	tokens := testColumn{name: "tokens", physical: format.ByteArray, list: true, elements: true, rows: []any{
		[]any{[]byte("a"), []byte("")}, []any{[]byte("b"), []byte("c")}, []any{[]byte("d"), nil}, []any{}}}
	data := writeFile(t, []testColumn{tokens}, layout{groupRows: 4, batchRows: 4, pageBytes: 64, version: 1})
	f := readFooter(t, data)
	fill := program.Sink{To: program.ToSparse, Ops: []program.Op{fillnull.Op{Int: 7}}}
	filled, ids, pairs := fill, fill, fill
	ids.Index, ids.Ops = 1, nil
	pairs.Index, pairs.Ops = 2, nil
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: f.Leaves[0].Path, Kind: program.Bytes, List: true,
			Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Ops: []program.Op{hextoint.Op{}}},
				{Inputs: []uint32{1, 1}, Combine: idlisttransform.Op{}},
			},
			Sinks: []program.GraphSink{{Value: 1, Sink: filled}, {Value: 1, Sink: ids}, {Value: 2, Sink: pairs}},
		}},
		Output: program.Output{Keys: 3, IDs: program.IDs64},
	}
	want := &reference.Tensors{Rows: 4, Lengths: []int32{2, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0},
		Values: []int64{10, 7, 11, 12, 11, 12, 11, 12}}
	requireMiniBatch(t, p, f, data, want)
}
