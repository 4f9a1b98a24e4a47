package stock

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// TestAnswersBecomeAVector checks which columns answers become: one for each set of parameters and types, of which
// those that make keys come first. The columns have as many rows as the largest set.
func TestAnswersBecomeAVector(t *testing.T) {
	reals, ids := clamp.Op{FloatHi: 2}, clamp.Op{IntHi: 5}
	v, err := answerVector(clamp.Unit, []rowvalue.Answer{
		{Op: reals, Inputs: []any{nil}, Want: nil}, // float32, as the next one
		{Op: reals, Inputs: []any{float32(7)}, Want: float32(2)},
		{Op: ids, Inputs: []any{int64(9)}, Want: int64(5)},
		{Op: ids, Inputs: []any{int64(9)}, Fails: true},
		{Op: ids, Inputs: []any{[]any{int64(9), int64(-1)}}, Want: []any{int64(5), int64(0)}},
		{Op: ids, Inputs: []any{[]any{}}, Want: []any{}},
	})
	require.NoError(t, err)
	p, err := operator.Unmarshal(v.Program)
	require.NoError(t, err)
	var types []program.ValueType
	for _, c := range p.Columns {
		types = append(types, program.ValueType{Kind: c.Kind, List: c.List})
	}
	assert.Equal(t, []program.ValueType{{Kind: program.Int64}, {Kind: program.Int64, List: true}, {Kind: program.Float32}},
		types)
	s, err := wire.UnmarshalSlice(v.Args)
	require.NoError(t, err)
	assert.Equal(t, uint32(2), s.Rows)
	le := binary.LittleEndian
	for i, want := range []uint32{1, 1, 2, 0} { // the id twice, two ids and none
		assert.Equal(t, want, le.Uint32(v.Output[s.Layout.Lengths+uint64(4*i):]))
	}
	for i, want := range []uint64{5, 5, 5, 0} {
		assert.Equal(t, want, le.Uint64(v.Output[s.Layout.Values+uint64(8*i):]))
	}
	for i, want := range []uint32{0xbf800000, 0x40000000} { // -1 for the null, and 2
		assert.Equal(t, want, le.Uint32(v.Output[s.Layout.Dense+uint64(4*i):]))
	}
}

func TestAnswersWithoutAVector(t *testing.T) {
	for name, c := range map[string]struct {
		answers []rowvalue.Answer
		want    string
	}{
		"none":         {nil, "declare one"},
		"only failing": {[]rowvalue.Answer{{Op: clamp.Op{}, Inputs: []any{int64(1)}, Fails: true}}, "declare one"},
		"values that the operator does not take": {
			[]rowvalue.Answer{{Op: clamp.Op{}, Inputs: []any{[]byte("a")}, Want: int64(1)}}, "takes no values of the types"},
		"inputs that the combiner does not take": {
			[]rowvalue.Answer{{Op: scores.Op{}, Inputs: []any{int64(1)}, Want: int64(1)}}, "takes no values of the types"},
		"parameters out of range": {
			[]rowvalue.Answer{{Op: clamp.Op{IntLo: 1}, Inputs: []any{int64(1)}, Want: int64(1)}},
			"takes no values of the types"},
	} {
		_, err := answerVectors(map[program.Unit][]rowvalue.Answer{clamp.Unit: c.answers})
		require.ErrorContains(t, err, "known answers of clamp: ", name)
		require.ErrorContains(t, err, c.want, name)
	}
}
