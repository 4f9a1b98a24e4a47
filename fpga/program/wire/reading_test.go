package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// annotatedReadings is a program whose columns are read by annotations.
func annotatedReadings() *program.Program {
	ids := []program.Sink{{To: program.ToSparse}}
	return &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1, Dense: 1}, Columns: []program.Column{
		{Name: "t", Kind: program.Int64, Reading: program.ReadSeconds, Sinks: ids},
		{Name: "x", Kind: program.Float32, Reading: program.ReadValues, Absent: true,
			Sinks: []program.Sink{{To: program.ToDense, Ops: []program.Op{fillnull.Op{}}}}},
	}}
}

// TestReadings checks which columns that are read by annotations are refused, and the wire form of annotated chunks.
func TestReadings(t *testing.T) {
	for name, change := range map[string]func(p *program.Program){
		"not a reading": func(p *program.Program) { p.Columns[0].Reading = 3 },
		"source":        func(p *program.Program) { p.Source = program.CriteoTSV },
		"seconds are":   func(p *program.Program) { p.Columns[1].Reading = program.ReadSeconds },
	} {
		bad := annotatedReadings()
		change(bad)
		require.ErrorContains(t, bad.Validate(), name)
	}

	s := someSlice()
	for _, a := range []program.Annotation{program.AnnotatedNull, program.AnnotatedDays,
		program.AnnotatedDecimal, program.AnnotatedDecimal + program.MaxDecimalScale} {
		s.Tasks[0].Chunk.Annotation, s.Tasks[0].Chunk.BitWidth = a, 0
		again, err := wire.UnmarshalSlice(wire.MarshalSlice(s))
		require.NoError(t, err)
		assert.Equal(t, s, again)
	}
	b := wire.MarshalSlice(s)
	goldenfile.Bytes(t, "testdata/slice.v1.7.hex", b)
	assert.EqualValues(t, 7, le.Uint16(b[6:]))
	for _, bad := range []byte{0, byte(program.AnnotatedDays) + 1,
		byte(program.AnnotatedDecimal) + program.MaxDecimalScale + 1} {
		b[wire.SliceHeader+22] = bad
		_, err := wire.UnmarshalSlice(b)
		require.ErrorContains(t, err, "is not an annotation of a chunk")
	}
}
