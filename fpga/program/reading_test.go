package program_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
)

// TestReadings checks the wire forms of columns that are read by annotations, and of annotated chunks, and which of
// them are refused.
func TestReadings(t *testing.T) {
	ids := []program.Sink{{To: program.ToSparse}}
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1, Dense: 1}, Columns: []program.Column{
		{Name: "t", Kind: program.Int64, Reading: program.ReadSeconds, Sinks: ids},
		{Name: "x", Kind: program.Float32, Reading: program.ReadValues, Absent: true,
			Sinks: []program.Sink{{To: program.ToDense, Ops: []program.Op{fillnull.Op{}}}}},
	}}
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "readings.v1.9.hex", b)
	assert.EqualValues(t, 9, le.Uint16(b[10:]))
	q, err := operator.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p.String(), q.String())
	assert.Equal(t, p.Columns[1].Reading, q.Columns[1].Reading)
	for name, change := range map[string]func(p *program.Program){
		"not a reading": func(p *program.Program) { p.Columns[0].Reading = 3 },
		"source":        func(p *program.Program) { p.Source = program.CriteoTSV },
		"seconds are":   func(p *program.Program) { p.Columns[1].Reading = program.ReadSeconds },
	} {
		bad, err := operator.Unmarshal(b)
		require.NoError(t, err)
		change(bad)
		require.ErrorContains(t, bad.Validate(), name)
	}

	part := program.Column{Kind: program.Int64, Part: program.MapKeys, Reading: program.ReadValues}
	require.ErrorContains(t, part.ValidateReading(program.Parquet), "read as it is stored")

	s := someSlice()
	for _, a := range []program.Annotation{program.AnnotatedNull, program.AnnotatedDays,
		program.AnnotatedDecimal, program.AnnotatedDecimal + program.MaxDecimalScale} {
		s.Tasks[0].Chunk.Annotation, s.Tasks[0].Chunk.BitWidth = a, 0
		again, err := program.UnmarshalSlice(s.Marshal())
		require.NoError(t, err)
		assert.Equal(t, s, again)
	}
	b = s.Marshal()
	golden(t, "slice.v1.7.hex", b)
	assert.EqualValues(t, 7, le.Uint16(b[6:]))
	for _, bad := range []byte{0, byte(program.AnnotatedDays) + 1,
		byte(program.AnnotatedDecimal) + program.MaxDecimalScale + 1} {
		b[program.SliceHeader+22] = bad
		_, err := program.UnmarshalSlice(b)
		require.ErrorContains(t, err, "is not an annotation of a chunk")
	}
}
