package program

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadings checks the wire forms of columns that are read by annotations, and of annotated chunks, and which of
// them are refused.
func TestReadings(t *testing.T) {
	ids := []Sink{{To: ToSparse}}
	p := &Program{Source: Parquet, Output: Output{Keys: 1, Dense: 1}, Columns: []Column{
		{Name: "t", Kind: Int64, Reading: ReadSeconds, Sinks: ids},
		{Name: "x", Kind: Float32, Reading: ReadValues, Absent: true,
			Sinks: []Sink{{To: ToDense, Ops: []Op{FillNull{}}}}},
	}}
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "readings.v1.9.hex", b)
	assert.EqualValues(t, 9, le.Uint16(b[10:]))
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p.String(), q.String())
	assert.Equal(t, p.Columns[1].Reading, q.Columns[1].Reading)
	for name, change := range map[string]func(p *Program){
		"not a reading": func(p *Program) { p.Columns[0].Reading = 3 },
		"source":        func(p *Program) { p.Source = CriteoTSV },
		"seconds are":   func(p *Program) { p.Columns[1].Reading = ReadSeconds },
	} {
		bad, err := Unmarshal(b)
		require.NoError(t, err)
		change(bad)
		require.ErrorContains(t, bad.Validate(), name)
	}

	part := Column{Kind: Int64, Part: MapKeys, Reading: ReadValues}
	require.ErrorContains(t, part.validateReading(Parquet), "read as it is stored")

	s := someSlice()
	for _, a := range []Annotation{AnnotatedNull, AnnotatedDays, AnnotatedDecimal, AnnotatedDecimal + MaxDecimalScale} {
		s.Tasks[0].Chunk.Annotation, s.Tasks[0].Chunk.BitWidth = a, 0
		again, err := UnmarshalSlice(s.Marshal())
		require.NoError(t, err)
		assert.Equal(t, s, again)
	}
	b = s.Marshal()
	golden(t, "slice.v1.7.hex", b)
	assert.EqualValues(t, 7, le.Uint16(b[6:]))
	for _, bad := range []byte{0, byte(AnnotatedDays) + 1, byte(AnnotatedDecimal) + MaxDecimalScale + 1} {
		b[SliceHeader+22] = bad
		_, err := UnmarshalSlice(b)
		require.ErrorContains(t, err, "is not an annotation of a chunk")
	}
}
