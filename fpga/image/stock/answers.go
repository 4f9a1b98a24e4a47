package stock

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	hash "github.com/millrace/millrace/fpga/unit/hashbytes"
)

// answerVectors returns a vector for each operator that declares known answers, in the order of the units.
func answerVectors(known map[program.Unit][]rowvalue.Answer) ([]image.Vector, error) {
	var all []image.Vector
	for unit, answers := range known {
		v, err := answerVector(unit, answers)
		if err != nil {
			return nil, fmt.Errorf("image: known answers of %v: %w", unit, err)
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b image.Vector) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// answerVector returns a vector with the known answers of an operator: Parquet pages of the inputs, the operator, and
// what it makes of them. Answers that fail are left out.
//
// A tensor holds neither nulls nor lists of real numbers, nor float64, nor bytes. So a float64 becomes the nearest
// float32, a real number that is null becomes nullReal, and bytes become their hash. Lists of real numbers become dense
// columns, with zeros behind shorter lists; those of a combiner, which dense columns do not take, become the scores of
// the ids 0, 1 and so on.
func answerVector(unit program.Unit, answers []rowvalue.Answer) (image.Vector, error) {
	cases, err := answerCases(answers)
	if err != nil {
		return image.Vector{}, err
	}
	w := &answerWriter{program: &program.Program{Source: program.Parquet}, slice: &program.Slice{}}
	w.program.Output.Weights = slices.ContainsFunc(cases, func(c *answerCase) bool {
		return c.out.Scored || c.becomesScores()
	})
	for _, c := range cases {
		w.rows = max(w.rows, len(c.answers))
	}
	w.slice.Rows = uint32(w.rows)
	for _, c := range cases {
		w.add(c)
	}
	if len(cases) == 0 {
		return image.Vector{}, fmt.Errorf("none of %d answers is of a row that does not fail: declare one", len(answers))
	}
	return w.vector(unit.String()), nil
}

// nullReal is what a dense column has for a null.
const nullReal = -1

// answerCase is the answers of an operator with the same parameters, for inputs of the same types.
type answerCase struct {
	op      rowvalue.Operator
	inputs  []program.ValueType
	answers []rowvalue.Answer
	out     program.ValueType
	columns uint32 // how many dense columns the operator makes; 0 if it makes none or one
}

// answerCases returns the cases of answers: first those that end in keys, as a program has its columns.
func answerCases(answers []rowvalue.Answer) ([]*answerCase, error) {
	var cases []*answerCase
	for _, a := range answers {
		if a.Fails {
			continue
		}
		types := a.InputTypes()
		i := slices.IndexFunc(cases, func(c *answerCase) bool {
			return reflect.DeepEqual(c.op, a.Op) && unifyTypes(c.inputs, types)
		})
		if i < 0 {
			i, cases = len(cases), append(cases, &answerCase{op: a.Op, inputs: types})
		}
		cases[i].answers = append(cases[i].answers, a)
	}
	for _, c := range cases {
		if err := c.settle(); err != nil {
			return nil, err
		}
	}
	var keys, dense []*answerCase
	for _, c := range cases {
		if c.isDense() {
			dense = append(dense, c)
		} else {
			keys = append(keys, c)
		}
	}
	return append(keys, dense...), nil
}

// unifyTypes reports whether both lists may be the types of the same inputs. If they may, known has what either knows.
func unifyTypes(known, types []program.ValueType) bool {
	if len(known) != len(types) {
		return false
	}
	unified := slices.Clone(known)
	for i, t := range types {
		k := &unified[i]
		switch {
		case *k == program.ValueType{}, k.Kind == 0 && t.List:
			*k = t
		case t == program.ValueType{}, t.Kind == 0 && k.List, t == *k:
		default:
			return false
		}
	}
	copy(known, unified)
	return true
}

// settle chooses the types of inputs of which the answers have no value, and sets what the operator makes.
func (c *answerCase) settle() error {
	for _, kind := range []program.Kind{program.Int64, program.Float32, program.Float64, program.Bytes} {
		for _, list := range []bool{false, true} {
			inputs := slices.Clone(c.inputs)
			for i := range inputs {
				if inputs[i].Kind == 0 {
					inputs[i] = program.ValueType{Kind: kind, List: list || inputs[i].List}
				}
			}
			if c.takes(inputs) {
				c.inputs = inputs
				return nil
			}
		}
	}
	return fmt.Errorf("the operator %T takes no values of the types %v: correct its answers", c.op, c.inputs)
}

// takes reports whether the operator takes inputs, and sets what it makes of them.
func (c *answerCase) takes(inputs []program.ValueType) (ok bool) {
	switch op := c.op.(type) {
	case program.Op:
		if len(inputs) != 1 || op.Check(program.Input{Kind: inputs[0].Kind, List: inputs[0].List}) != nil {
			return false
		}
		c.out = program.ValueType{Kind: op.Out(inputs[0].Kind), List: inputs[0].List}
		if n, made := program.DenseColumns([]program.Op{op}); made {
			c.columns = n
		}
		return c.out.Kind != 0
	case program.Combiner:
		c.out, ok = op.Yield(inputs)
		return ok && op.Check() == nil
	}
	return false
}

// isDense reports whether the case ends in dense columns.
func (c *answerCase) isDense() bool {
	return c.columns > 0 || c.isReal() && !c.becomesScores()
}

// becomesScores reports whether the operator makes lists of real numbers that become scores.
func (c *answerCase) becomesScores() bool {
	_, combines := c.op.(program.Combiner)
	return combines && c.out.List && c.isReal()
}

// isReal reports whether the operator makes real numbers.
func (c *answerCase) isReal() bool {
	return c.out.Kind == program.Float32 || c.out.Kind == program.Float64
}

// hashed returns bytes, or a list of bytes, as the ids that hash_bytes makes of them.
func hashed(v any) any {
	switch x := v.(type) {
	case []byte:
		return hash.Reference(x, hash.XXH3)
	case []any:
		ids := make([]any, len(x))
		for i, e := range x {
			ids[i] = hashed(e)
		}
		return ids
	}
	return v
}

// scored returns a list of real numbers as the scores of ids that count from 0. A null list becomes an empty one.
func scored(list any) any {
	of := rowvalue.ScoredList{IDs: []any{}, Scores: reals(list)}
	for i := range of.Scores {
		of.IDs = append(of.IDs, int64(i))
	}
	return of
}

// chain returns the operators from the operator to the tensor, and the number of dense columns that they make.
func (c *answerCase) chain() (ops []program.Op, columns uint32) {
	if op, ok := c.op.(program.Op); ok {
		ops = append(ops, op)
	}
	if c.out.Kind == program.Bytes {
		ops = append(ops, hashbytes.Op{Function: hashbytes.XXH3})
	}
	if !c.isDense() {
		return ops, 0
	}
	if c.columns > 0 {
		return ops, c.columns
	}
	if c.out.Kind == program.Float64 {
		ops = append(ops, convert.Op{To: program.Float32})
	}
	if c.out.List {
		columns = 1
		for _, a := range c.answers {
			columns = max(columns, uint32(len(reals(a.Want))))
		}
		return append(ops, fixedlength.Op{Length: columns, Pads: true}), columns
	}
	if slices.ContainsFunc(c.answers, func(a rowvalue.Answer) bool { return a.Want == nil }) {
		ops = append(ops, fillnull.Op{Float: nullReal})
	}
	return ops, 1
}

// reals returns the real numbers of a dense column or of a list. A list that holds a null becomes a null list in the
// tensor.
func reals(v any) []float32 {
	switch x := v.(type) {
	case float32:
		return []float32{x}
	case float64:
		if x != x {
			return []float32{math.Float32frombits(0x7fc00000)}
		}
		return []float32{float32(x)}
	case []float32:
		return x
	case []any:
		if rowvalue.HoldsNull(x) {
			return nil
		}
		var all []float32
		for _, e := range x {
			all = append(all, reals(e)...)
		}
		return all
	}
	return nil
}

// answerWriter writes a program, its input and what it puts out.
type answerWriter struct {
	rows    int
	program *program.Program
	slice   *program.Slice
	input   []byte

	lengths []uint32
	ids     []int64
	weights []float32
	dense   [][]float32 // by column, a value a row
}

// add adds the columns, the operator and the output of a case.
func (w *answerWriter) add(c *answerCase) {
	answers := slices.Clone(c.answers)
	for len(answers) < w.rows { // all columns have as many rows
		answers = append(answers, answers[len(answers)-1])
	}
	if c.becomesScores() {
		for i := range answers {
			answers[i].Want = scored(answers[i].Want)
		}
	}
	if c.out.Kind == program.Bytes {
		for i := range answers {
			answers[i].Want = hashed(answers[i].Want)
		}
	}
	ops, columns := c.chain()
	sink := program.Sink{To: program.ToSparse, Index: w.program.Output.Keys, Ops: ops}
	if columns > 0 {
		sink.To, sink.Index = program.ToDense, w.program.Output.Dense
		w.program.Output.Dense += columns
		w.addDense(answers, int(columns))
	} else {
		w.program.Output.Keys++
		w.addKey(answers)
	}
	combiner, ok := c.op.(program.Combiner)
	if !ok {
		w.addColumn(program.NoPart, c.inputs[0], answers, func(a *rowvalue.Answer) any { return a.Inputs[0] })
		w.program.Columns[len(w.program.Columns)-1].Sinks = []program.Sink{sink}
		return
	}
	w.addGraph(c, answers, combiner, program.GraphSink{Sink: sink,
		Scored: c.out.Scored || c.becomesScores()})
}

// addGraph adds the inputs of a combiner and the step that takes them. Ids with scores come from a step before it.
func (w *answerWriter) addGraph(c *answerCase, answers []rowvalue.Answer, op program.Combiner, sink program.GraphSink) {
	var g program.Graph
	last := program.Step{Combine: op}
	part, columns := program.GraphFirst, uint32(0)
	add := func(kind program.Kind, list bool, of func(a *rowvalue.Answer) any) {
		w.addColumn(part, program.ValueType{Kind: kind, List: list}, answers, of)
		part = program.GraphNext
		columns++
	}
	ids := func(of func(a *rowvalue.Answer) any) func(a *rowvalue.Answer) any {
		return func(a *rowvalue.Answer) any { return rowvalue.WithoutScores(of(a)) }
	}
	var scoredInputs []int
	for i, t := range c.inputs {
		input := func(a *rowvalue.Answer) any { return a.Inputs[i] }
		last.Inputs = append(last.Inputs, columns)
		if !t.Scored {
			add(t.Kind, t.List, input)
			continue
		}
		scoredInputs = append(scoredInputs, i)
		add(t.Kind, true, ids(input))
		add(program.Float32, true, func(a *rowvalue.Answer) any {
			list, _ := input(a).(rowvalue.ScoredList)
			return rowvalue.List(list.Scores)
		})
	}
	ofScores := columns
	if c.becomesScores() {
		add(program.Int64, true, ids(func(a *rowvalue.Answer) any { return a.Want }))
	}
	for _, i := range scoredInputs {
		of := last.Inputs[i]
		last.Inputs[i] = columns + uint32(len(g.Steps))
		g.Steps = append(g.Steps, program.Step{Inputs: []uint32{of, of + 1}, Combine: withscores.Op{}})
	}
	g.Steps = append(g.Steps, last)
	if c.becomesScores() {
		made := columns + uint32(len(g.Steps)) - 1
		g.Steps = append(g.Steps, program.Step{Inputs: []uint32{ofScores, made}, Combine: withscores.Op{}})
	}
	sink.Value = columns + uint32(len(g.Steps)) - 1
	g.Sinks = []program.GraphSink{sink}
	w.program.Graphs = append(w.program.Graphs, g)
}

// addColumn adds a column with a page of the values of all rows.
func (w *answerWriter) addColumn(part program.Part, t program.ValueType, answers []rowvalue.Answer,
	of func(a *rowvalue.Answer) any) {
	number := uint32(len(w.program.Columns))
	w.program.Columns = append(w.program.Columns, program.Column{Name: fmt.Sprintf("input_%d", number), Kind: t.Kind,
		List: t.List, Part: part})
	page := answerPage{list: t.List}
	for i := range answers {
		page.addRow(of(&answers[i]))
	}
	chunk, body := page.chunk(t.Kind)
	data := image.DataPage(body, len(page.definition))
	window := program.Span{Off: uint64(len(w.input)), Len: uint64(len(data))}
	w.input = append(w.input, data...)
	w.slice.Tasks = append(w.slice.Tasks, program.Task{Column: number, Count: uint32(w.rows), Chunk: chunk,
		Window: window, ChunkLen: window.Len})
}

// addDense adds what dense columns hold.
func (w *answerWriter) addDense(answers []rowvalue.Answer, columns int) {
	at := len(w.dense)
	w.dense = append(w.dense, make([][]float32, columns)...)
	for _, a := range answers {
		values := reals(a.Want)
		if a.Want == nil && columns == 1 {
			values = []float32{nullReal}
		}
		for i := range columns {
			var x float32
			if i < len(values) {
				x = values[i]
			}
			w.dense[at+i] = append(w.dense[at+i], x)
		}
	}
}

// addKey adds the lists of a key.
func (w *answerWriter) addKey(answers []rowvalue.Answer) {
	for _, a := range answers {
		ids := rowvalue.IDs(a.Want)
		w.lengths = append(w.lengths, uint32(len(ids)))
		w.ids = append(w.ids, ids...)
		scores := slices.Repeat([]float32{1}, len(ids))
		if list, ok := a.Want.(rowvalue.ScoredList); ok {
			scores = list.Scores
		}
		w.weights = append(w.weights, scores...)
	}
}

// vector returns the vector.
func (w *answerWriter) vector(name string) image.Vector {
	le := binary.LittleEndian
	// The engine asks for room for an id of every row of a scalar column, although nulls take none.
	w.slice.ValueCap = uint64(len(w.ids)) + uint64(w.program.Output.Keys)*uint64(w.rows)
	out := make([]byte, w.program.Output.Size(w.slice.Rows, w.slice.ValueCap))
	place, _ := w.program.Output.LayoutIn(w.slice.Rows, uint64(len(out)))
	w.slice.Layout = place
	for column, values := range w.dense {
		for row, x := range values {
			le.PutUint32(out[place.Dense+uint64(row*len(w.dense)+column)*4:], math.Float32bits(x))
		}
	}
	for i, n := range w.lengths {
		le.PutUint32(out[place.Lengths+uint64(i)*4:], n)
	}
	for i, id := range w.ids {
		le.PutUint64(out[place.Values+uint64(i)*8:], uint64(id))
		if w.program.Output.Weights {
			le.PutUint32(out[place.Weights+uint64(i)*4:], math.Float32bits(w.weights[i]))
		}
	}
	return image.ProgramVector(name, w.program, w.slice, w.input, out)
}

// answerPage is the levels and values of a column.
type answerPage struct {
	list                   bool
	repetition, definition []byte
	values                 []byte
}

// The levels of an optional list of optional elements.
const (
	nullListLevel  = 0
	emptyListLevel = 1
	nullLevel      = 2
	valueLevel     = 3
)

// addRow adds a row's value.
func (p *answerPage) addRow(v any) {
	list, isList := v.([]any)
	switch {
	case !p.list && v == nil:
		p.addValue(0, 0, nil)
	case !p.list:
		p.addValue(0, 1, v)
	case !isList || list == nil:
		p.addValue(0, nullListLevel, nil)
	case len(list) == 0:
		p.addValue(0, emptyListLevel, nil)
	}
	for i, e := range list {
		level := byte(valueLevel)
		if e == nil {
			level = nullLevel
		}
		p.addValue(byte(min(i, 1)), level, e)
	}
}

// addValue adds levels and, unless it is nil, a value.
func (p *answerPage) addValue(repetition, definition byte, v any) {
	p.repetition, p.definition = append(p.repetition, repetition), append(p.definition, definition)
	le := binary.LittleEndian
	switch x := v.(type) {
	case int64:
		p.values = le.AppendUint64(p.values, uint64(x))
	case float32:
		p.values = le.AppendUint32(p.values, math.Float32bits(x))
	case float64:
		p.values = le.AppendUint64(p.values, math.Float64bits(x))
	case []byte:
		p.values = append(le.AppendUint32(p.values, uint32(len(x))), x...)
	}
}

// chunk returns the type of the column chunk, and the body of its page.
func (p *answerPage) chunk(kind program.Kind) (program.ChunkType, []byte) {
	chunk := program.ChunkType{MaxDef: 1, Values: uint64(len(p.definition))}
	chunk.Physical = map[program.Kind]uint8{program.Int64: 2, program.Float32: 4, program.Float64: 5,
		program.Bytes: 6}[kind]
	if !p.list {
		return chunk, append(packedLevels(p.definition, 1), p.values...)
	}
	chunk.MaxDef, chunk.MaxRep, chunk.ElementDef = valueLevel, 1, nullLevel
	return chunk, append(append(packedLevels(p.repetition, 1), packedLevels(p.definition, 2)...), p.values...)
}

// packedLevels returns a section of levels of a data page v1: its length, and one run of bit-packed levels.
func packedLevels(levels []byte, width int) []byte {
	groups := (len(levels) + 7) / 8
	run := binary.AppendUvarint(nil, uint64(groups)<<1|1)
	at := len(run)
	run = append(run, make([]byte, groups*width)...)
	for i, level := range levels {
		bit := i * width
		run[at+bit/8] |= level << (bit % 8)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(run))), run...)
}
