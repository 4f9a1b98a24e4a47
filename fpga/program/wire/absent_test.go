package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// absentColumns is a program whose partitions may lack a map and a column.
func absentColumns() *program.Program {
	p := mapProgram()
	for i := range p.Columns {
		p.Columns[i].Absent = p.Columns[i].Part.OfMap()
	}
	p.Columns[len(p.Columns)-1].Absent = true
	return p
}

// someSlice14 is a slice that only version 1.4 can express.
func someSlice14() *program.Slice {
	s := someSlice13()
	s.Tasks = append(
		s.Tasks,
		program.Task{Column: 5, Row: 1, Count: 2, Chunk: program.ChunkType{Absent: true, Values: 1 << 33},
			Cursor: program.Cursor{Skip: 7}},
	)
	return s
}

func TestSliceOfAbsentColumns(t *testing.T) {
	b := wire.MarshalSlice(someSlice14())
	goldenfile.Bytes(t, "testdata/slice.v1.4.hex", b)
	s, err := wire.UnmarshalSlice(b)
	require.NoError(t, err)
	assert.Equal(t, someSlice14(), s)
	assert.Equal(t, uint16(4), le.Uint16(b[6:]), "the minor version")
}

func TestAbsentRefused(t *testing.T) {
	part := absentColumns()
	for i := range part.Columns {
		if part.Columns[i].Part == program.MapValues {
			part.Columns[i].Absent = false
			break
		}
	}
	require.ErrorContains(t, part.Validate(), "a map of which partitions may lack a part")
	text := textProgram()
	text.Columns[0].Absent = true
	require.ErrorContains(t, text.Validate(), "lacks no column")

	b := wire.MarshalSlice(someSlice14())
	b[len(b)-wire.SliceTask+21] = 2 * wire.ChunkAnnotated
	_, err := wire.UnmarshalSlice(b)
	require.ErrorContains(t, err, "chunk flags are 0x20, want at most 0x1f")
	p := absentColumns()
	p.Columns = p.Columns[len(p.Columns)-1:]
	err = wire.ReadAgain(&p.Columns[0], func(b []byte) { b[12] = wire.ColumnFlags + 1 })
	require.ErrorContains(t, err, "column flags are 0x10, want at most 0xf")
}
