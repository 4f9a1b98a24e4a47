package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// bfloatProgram makes a dense tensor of bfloat16.
func bfloatProgram() *program.Program {
	p := everyOp()
	p.Output.DenseType = program.DenseBFloat16
	return p
}

// TestDenseTypeIsRequired checks that a build that does not know the section refuses the program: the section is the
// last one, and it is required.
func TestDenseTypeIsRequired(t *testing.T) {
	b := wire.Marshal(bfloatProgram())
	at := len(b) - wire.DenseSize - wire.SectionSize
	assert.Equal(t, uint16(wire.SectionDense), le.Uint16(b[at:]))
	assert.Equal(t, uint16(wire.FlagRequired), le.Uint16(b[at+2:]))
	le.PutUint16(b[at+2:], 0)
	_, err := operator.Unmarshal(reseal(b))
	require.ErrorIs(t, err, wire.ErrCorrupt)
}

func TestDenseTypeRefused(t *testing.T) {
	section := func(change func(payload []byte)) []byte {
		b := wire.Marshal(bfloatProgram())
		change(b[len(b)-wire.DenseSize:])
		return reseal(b)
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"a type that is none": {section(func(b []byte) { b[0] = 2 }), "dense(2) is not a type of dense"},
		"float32":             {section(func(b []byte) { b[0] = 0 }), "which is said by leaving the section out"},
		"reserved bytes":      {section(func(b []byte) { b[7] = 1 }), "reserved bytes that are not zero"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := operator.Unmarshal(c.b)
			require.ErrorContains(t, err, c.want)
		})
	}
	p := textProgram()
	p.Output.DenseType = program.DenseBFloat16
	require.EqualError(t, p.Validate(), "program: invalid: dense is bfloat16 and has no columns")
}

func TestLayoutOfBFloat16(t *testing.T) {
	out := program.Output{Label: true, Dense: 3, Keys: 1, DenseType: program.DenseBFloat16}
	at := out.Layout(11) // 66 bytes of dense
	assert.Equal(t, program.OutputLayout{Lengths: 128, Label: 192, Values: 256}, at)
	out.DenseType = program.DenseFloat32
	assert.EqualValues(t, 192, out.Layout(11).Lengths)
}
