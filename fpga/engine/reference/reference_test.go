package reference_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TestChains runs values through chains; the tests of the operators' own packages have their known answers.
func TestChains(t *testing.T) {
	fill := fillnull.Op{Int: 6}
	hash := sigridhash.Op{Max: 100}
	for name, c := range map[string]struct {
		column program.Column
		ops    []program.Op
		row    any
		want   any
	}{
		"a null stays":                   {program.Column{Kind: program.Int64}, []program.Op{hash}, nil, nil},
		"a null is filled behind a hash": {program.Column{Kind: program.Int64}, []program.Op{hash, fill}, nil, int64(6)},
		"a null list is not filled": {program.Column{Kind: program.Int64, List: true}, []program.Op{hash, fill}, nil,
			nil},
		"a null element is filled": {program.Column{Kind: program.Int64, List: true}, []program.Op{fill, hash},
			[]any{int64(14), nil}, []any{int64(83), int64(91)}},
		"a null element that reaches an operator makes the list null": {program.Column{Kind: program.Int64, List: true},
			[]program.Op{hash, fill}, []any{int64(1), nil}, nil},
		"fill_null takes the kind that the operator before it makes": {program.Column{Kind: program.Int64},
			[]program.Op{convert.Op{To: program.Float32}, fillnull.Op{Int: 9, Float: 1.5}}, nil, float32(1.5)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reference.Apply(c.ops, &c.column, c.row)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	_, err := reference.Apply([]program.Op{hash, rescale.Op{Multiplier: math.MaxInt64, Divisor: 1}},
		&program.Column{Kind: program.Int64, List: true}, []any{int64(1)})
	require.ErrorIs(t, err, reference.ErrData)
	require.ErrorContains(t, err, "rescale: element 0: ")
}

type row struct {
	A []int64 `parquet:"a,list"`
	B *int64  `parquet:"b,optional"`
	X float32 `parquet:"x"`
}

func file(t *testing.T) ([]byte, *format.File) {
	one, two := int64(1), int64(2)
	rows := []row{{[]int64{10, 11}, &one, 0.5}, {nil, nil, 1.5}, {[]int64{12}, &two, 2.5},
		{[]int64{13, 14, 15}, nil, 3.5}}
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, rows, pq.MaxRowsPerRowGroup(3)))
	f, err := format.ReadFooter(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	require.Len(t, f.RowGroups, 2)
	return b.Bytes(), f
}

func lists() *program.Program {
	return &program.Program{Source: program.Parquet, Output: program.Output{Keys: 2, Dense: 1},
		Columns: []program.Column{
			{Name: "a", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse}}},
			{Name: "b", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 1}}},
			{Name: "x", Kind: program.Float32, Sinks: []program.Sink{{To: program.ToDense}}},
		}}
}

// Values are feature-major, then batch; rows are cut straight across row groups.
func TestMiniBatch(t *testing.T) {
	data, f := file(t)
	r, err := reference.NewParquet(lists(), f, bytes.NewReader(data))
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Rows())
	got, err := r.MiniBatch(1, 3)
	require.NoError(t, err)
	require.Equal(t, &reference.Tensors{
		Rows: 3, Dense: []float32{1.5, 2.5, 3.5}, Lengths: []int32{0, 1, 3, 0, 1, 0},
		Values: []int64{12, 13, 14, 15, 2},
	}, got)
	again, err := r.MiniBatch(1, 3)
	require.NoError(t, err)
	require.Equal(t, got, again)
	_, err = r.MiniBatch(2, 3)
	require.Error(t, err)
}

func TestRefused(t *testing.T) {
	data, f := file(t)
	for name, change := range map[string]func(p *program.Program){
		"a null where every length is 1": func(p *program.Program) {
			p.Columns, p.Output = p.Columns[1:], program.Output{Keys: 1, Dense: 1, Fixed: true}
			p.Columns[0].Sinks[0].Index = 0
		},
		"a null in dense": func(p *program.Program) {
			p.Output.Dense = 2
			p.Columns = append(p.Columns, program.Column{Name: "b", Kind: program.Int64,
				Sinks: []program.Sink{{To: program.ToDense, Index: 1,
					Ops: []program.Op{convert.Op{To: program.Float32}}}}})
		},
		"an id that is too large": func(p *program.Program) {
			p.Output.IDs = program.IDs32
			p.Columns[0].Sinks[0].Ops = []program.Op{clamp.Op{IntLo: 1 << 31, IntHi: 1 << 32}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := lists()
			change(p)
			require.NoError(t, p.Validate())
			r, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			_, err = r.MiniBatch(0, 4)
			require.ErrorIs(t, err, reference.ErrData)
		})
	}
	for name, column := range map[string]program.Column{
		"no such column": {Name: "z", Kind: program.Int64}, "another kind": {Name: "x", Kind: program.Int64},
		"no list": {Name: "a", Kind: program.Int64},
	} {
		p := lists()
		p.Columns[0] = column
		_, err := reference.NewParquet(p, f, bytes.NewReader(data))
		require.Error(t, err, name)
	}
}

func TestText(t *testing.T) {
	line := func(label, first, last string) string {
		return label + "\t" + first + strings.Repeat("\t", 38) + last + "\n"
	}
	data := []byte(line("1", "7", "ff") + line("0", "x", "") + line("0", "", "80000000") + "\t\n")
	p := &program.Program{Source: program.CriteoTSV, Label: true, Malformed: program.MalformedDrop,
		Output: program.Output{Label: true, Dense: 1, Keys: 1}, Columns: []program.Column{
			{Name: "cat_25", Field: 39, Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse}}},
			{Name: "int_0", Field: 1, Kind: program.Int64, Sinks: []program.Sink{{To: program.ToDense,
				Ops: []program.Op{fillnull.Op{Int: -1}, convert.Op{To: program.Float32}}}}},
			{Name: "label", Field: 0, Kind: program.Int64,
				Sinks: []program.Sink{{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}}}},
		}}
	require.NoError(t, p.Validate())
	r, err := reference.NewText(p, data)
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Rows())
	require.EqualValues(t, []int64{0, 2, 2}, []int64{r.Dropped(0, 1), r.Dropped(1, 1), r.Dropped(0, 2)})
	got, err := r.MiniBatch(0, 2)
	require.NoError(t, err)
	require.Equal(t, &reference.Tensors{Rows: 2, Label: []float32{1, 0}, Dense: []float32{7, -1},
		Lengths: []int32{1, 1},
		Values:  []int64{255, 1 << 31}}, got)
	p.Malformed = program.MalformedFail
	_, err = reference.NewText(p, data)
	require.ErrorContains(t, err, fmt.Sprintf("line %d", 2))
}
