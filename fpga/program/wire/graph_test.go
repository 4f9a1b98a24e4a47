package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// graphProgram has two graphs: one whose values feed keys, a value of which is used twice, and one that feeds dense
// columns.
func graphProgram() *program.Program {
	buckets := &bucketize.Op{Borders32: []float32{1, 2}}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "plain", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse}}},
			{Name: "a.list.element", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "b", Kind: program.Float32, Part: program.GraphNext},
			{Name: "c", Kind: program.Int64, Part: program.GraphNext},
			{Name: "d", Kind: program.Int64, Part: program.GraphFirst},
			{Name: "e", Kind: program.Int64, Part: program.GraphNext},
			{Name: "rate", Kind: program.Float32, Sinks: []program.Sink{{To: program.ToDense, Index: 1}}},
		},
		Graphs: []program.Graph{
			{
				Steps: []program.Step{
					{Inputs: []uint32{1}, Ops: []program.Op{fillnull.Op{}, buckets}},
					{Inputs: []uint32{0, 3}, Combine: cartesian.Op{MaxLength: 100, Overflow: cartesian.Fail},
						Ops: []program.Op{positivemodulus.Op{M: 1000}}},
					{Inputs: []uint32{2, 4}, Combine: cartesian.Op{MaxLength: cartesian.MaxIDs}},
				},
				Sinks: []program.GraphSink{
					{Value: 4, Sink: program.Sink{To: program.ToSparse, Index: 1}},
					{Value: 5, Sink: program.Sink{To: program.ToSparse, Index: 2, Ops: []program.Op{sigridhash.Op{Max: 1000}}}},
				},
			},
			{
				Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: cartesian.Op{MaxLength: 1}}},
				Sinks: []program.GraphSink{
					{
						Value: 2,
						Sink: program.Sink{
							To:  program.ToDense,
							Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}, log.Op{Add: 1}},
						},
					},
				},
			},
		},
		Output: program.Output{Dense: 2, Keys: 3},
	}
}

func TestGraphsDamage(t *testing.T) {
	empty := graphProgram()
	empty.Columns, empty.Graphs, empty.Output = empty.Columns[:1], nil, program.Output{Keys: 1}
	require.NoError(t, empty.Validate())
	section := func(b []byte) []byte { return wire.AppendGraphs(empty, b) }
	_, err := operator.Unmarshal(reseal(wire.AppendSection(wire.Marshal(empty), wire.SectionGraphs, section)))
	require.ErrorIs(t, err, wire.ErrCorrupt, "a section without a graph")
}

func TestUnknownCombiner(t *testing.T) {
	b := wire.Marshal(graphProgram())
	at := bytes.Index(b, []byte{byte(cartesian.Unit), 0, 1, 0, 9, 0, 0, 0})
	require.Positive(t, at)
	b[at+2] = 2
	_, err := operator.Unmarshal(reseal(b))
	var unknown *wire.UnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, wire.UnknownError{Unit: cartesian.Unit, Version: 2}, *unknown)
	b[at+2], b[at+4] = 1, 8
	_, err = operator.Unmarshal(reseal(b))
	require.ErrorIs(t, err, wire.ErrCorrupt)
	require.ErrorContains(t, err, "cartesian has parameters that are 1 bytes too short")
}

func TestGraphsUnitsAndParts(t *testing.T) {
	p := graphProgram()
	var units []program.Unit
	for _, ref := range p.Units() {
		units = append(units, ref.Unit)
	}
	assert.Equal(
		t,
		[]program.Unit{fillnull.Unit, log.Unit, bucketize.Unit, sigridhash.Unit, positivemodulus.Unit, convert.Unit,
			cartesian.Unit, program.UnitParquet},
		units,
	)
	for i, n := range []int{1, 3, 1, 1, 2, 1, 1} {
		assert.Equal(t, n, p.Parts(i), i)
	}
	assert.Nil(t, p.GraphAt(0))
	assert.Same(t, &p.Graphs[0], p.GraphAt(1))
	assert.Nil(t, p.GraphAt(2))
	assert.Same(t, &p.Graphs[1], p.GraphAt(4))
	assert.False(t, program.GraphFirst.OfMap())
	assert.True(t, program.GraphNext.Continues())
	assert.False(t, program.GraphFirst.Continues())
}

func TestGraphsString(t *testing.T) {
	assert.Equal(t, `source parquet
column 0 "plain" int64
  sparse 0:
column 1 "a.list.element" list<int64>
column 2 "b" float32
column 3 "c" int64
  value 3 = [1]: fill_null 0 | bucketize borders float32 [1 2] side left nan torcharrow -> int64
  value 4 = [0 3]: cartesian max_length 100 overflow fail | positive_modulus 1000 -> list<int64>
  value 5 = [2 4]: cartesian max_length 65536 overflow cut -> list<int64>
  value 4 to sparse 1:
  value 5 to sparse 2: sigrid_hash salt 0 max 1000
column 4 "d" int64
column 5 "e" int64
  value 2 = [0 1]: cartesian max_length 1 overflow cut -> int64
  value 2 to dense 0: fill_null 0 | convert float32 | log 1
column 6 "rate" float32
  dense 1:
output label false, dense 2, keys 3, ids int64, fixed false
`, graphProgram().String())
	assert.Equal(t, "overflow(2)", cartesian.Overflow(2).String())
	assert.Equal(t, "graph graph, continued", program.GraphFirst.String()+" "+program.GraphNext.String())
}

// TestListsOfTextAreNotFilledUp checks both sides of the limit for a sink and for a step.
func TestListsOfTextAreNotFilledUp(t *testing.T) {
	for _, c := range []struct {
		source  program.Source
		slice   listslice.Op
		refused bool
	}{
		{program.CriteoTSV, listslice.Op{End: 1, Padded: true}, false},
		{program.CriteoTSV, listslice.Op{End: 2, Padded: true}, true},
		{program.CriteoBinary, listslice.Op{Start: -2, End: listslice.NoEnd, Padded: true}, true},
		{program.CriteoBinary, listslice.Op{Start: -2, End: listslice.NoEnd}, false},
		{program.Parquet, listslice.Op{End: 2, Padded: true}, false},
	} {
		inSink := &program.Program{
			Source: c.source,
			Columns: []program.Column{
				{
					Name:  "a",
					Kind:  program.Int64,
					Field: 1,
					Part:  program.GraphFirst,
				}, {Name: "b", Kind: program.Int64, Field: 2, Part: program.GraphNext},
			},
			Graphs: []program.Graph{{
				Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: idlisttransform.Op{}}},
				Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToSparse, Ops: []program.Op{c.slice}}}},
			}},
			Output: program.Output{Keys: 1},
		}
		inStep := *inSink
		inStep.Graphs = []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: idlisttransform.Op{}, Ops: []program.Op{c.slice}}},
			Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToSparse}}},
		}}
		for i, p := range []*program.Program{inSink, &inStep} {
			if c.source == program.Parquet {
				p.Columns = slices.Clone(p.Columns)
				p.Columns[0].Field, p.Columns[1].Field = 0, 0
			}
			err := p.Validate()
			if !c.refused {
				require.NoError(t, err, "%+v", c)
				continue
			}
			require.ErrorIs(t, err, program.ErrInvalid, "%+v", c)
			require.ErrorContains(t, err, []string{"sink 0: ", "step 0: "}[i]+
				"list_slice: fills lists up to 2, and a row of text makes at most one value a key")
		}
	}
}

func TestGraphsValidate(t *testing.T) {
	step := func(edit func(s *program.Step)) func(*program.Program) {
		return func(p *program.Program) { edit(&p.Graphs[0].Steps[1]) }
	}
	refused(t, graphProgram, whole, map[string]refusal[*program.Program]{
		"a graph too few": {func(p *program.Program) { p.Graphs = p.Graphs[:1] }, `column 4 "d": begins graph 1 of 1`},
		"a graph too many": {func(p *program.Program) { p.Graphs = append(p.Graphs, p.Graphs[0]) },
			"3 graphs, and columns for 2"},
		"continued without first": {func(p *program.Program) {
			p.Columns[0].Part, p.Columns[0].Sinks = program.GraphNext, nil
		},
			"a further column of a graph without the first"},
		"a column with sinks": {func(p *program.Program) { p.Columns[2].Sinks = []program.Sink{{To: program.ToDense}} },
			`column 2 "b": a column of a graph feeds 1 sinks, want none`},
		"no sinks": {func(p *program.Program) { p.Graphs[1].Sinks = nil }, "a graph without sinks"},
		"itself": {step(func(s *program.Step) { s.Inputs[1] = 4 }),
			"step 1: takes value 4, want one before it (below 4)"},
		"a later step": {step(func(s *program.Step) { s.Inputs[1] = 5 }), "step 1: takes value 5, want one before it"},
		"no inputs":    {step(func(s *program.Step) { s.Inputs = nil }), "step 1: 0 inputs, want 1 to 8"},
		"nine inputs":  {step(func(s *program.Step) { s.Inputs = make([]uint32, 9) }), "step 1: 9 inputs, want 1 to 8"},
		"no combiner": {step(func(s *program.Step) { s.Combine = nil }), "step 1: 2 inputs and no operator that takes them " +
			"together"},
		"nothing to do": {func(p *program.Program) { p.Graphs[0].Steps[0].Ops = nil }, "step 0: does nothing"},
		"one input": {step(func(s *program.Step) { s.Inputs = s.Inputs[:1] }),
			"step 1: cartesian does not take [list<int64>]"},
		"reals": {step(func(s *program.Step) { s.Inputs[1] = 1 }),
			"step 1: cartesian does not take [list<int64> float32]"},
		"length 0": {step(func(s *program.Step) { s.Combine = cartesian.Op{} }),
			"cartesian: a length of 0, want 1 to 65536"},
		"length above": {step(func(s *program.Step) { s.Combine = cartesian.Op{MaxLength: cartesian.MaxIDs + 1} }),
			"a length of 65537"},
		"no rule": {step(func(s *program.Step) { s.Combine = cartesian.Op{MaxLength: 1, Overflow: 2} }),
			"overflow(2) is not a rule for too many ids"},
		"an operator that does not fit": {step(func(s *program.Step) { s.Ops = []program.Op{hextoint.Op{}} }),
			"step 1: operator 0: hex_to_int does not take int64"},
		"an unused step": {func(p *program.Program) { p.Graphs[0].Sinks[1].Value = 4 }, "nothing takes step 2"},
		"an unused column": {func(p *program.Program) { p.Graphs[1].Steps[0].Inputs[1] = 0 },
			`nothing takes column "e" of the graph`},
		"a sink of no value": {func(p *program.Program) { p.Graphs[0].Sinks[1].Value = 6 }, "sink 1 takes value 6 of 6"},
		"a list that is dense": {func(p *program.Program) { p.Graphs[0].Sinks[1].Sink = program.Sink{To: program.ToDense} },
			"a list cannot be dense"},
		"a key behind dense": {func(p *program.Program) {
			p.Columns[6].Sinks[0] = program.Sink{To: program.ToSparse, Index: 3,
				Ops: []program.Op{&bucketize.Op{Borders32: []float32{1}}}}
			p.Output.Keys, p.Output.Dense = 4, 1
		}, `column 6 "rate": feeds a key behind a column that feeds none`},
		"a list where lengths are 1": {func(p *program.Program) { p.Output.Fixed = true },
			"a list in an output where every length is 1"},
		"a key twice": {func(p *program.Program) { p.Graphs[0].Sinks[1].Sink.Index = 1 }, "key 2 is due"},
		"too many columns": {func(p *program.Program) {
			for range program.MaxGraphColumns {
				p.Columns = append(p.Columns, program.Column{Name: "x", Kind: program.Int64, Part: program.GraphNext})
			}
			p.Columns[6].Part, p.Columns[6].Sinks = program.GraphNext, nil
		}, "259 columns of a graph, want at most 256"},
		"too many steps": {func(p *program.Program) { p.Graphs[1].Steps = make([]program.Step, program.MaxSteps+1) },
			"4097 steps of a graph, want at most 4096"},
	})
	p := graphProgram()
	p.Graphs[0].Steps[1].Inputs = []uint32{0, 0}
	p.Graphs[0].Steps[2].Inputs = []uint32{2, 3}
	p.Graphs[0].Sinks[0].Value = 4
	require.NoError(t, p.Validate(), "a value may be taken twice by a step")
}
