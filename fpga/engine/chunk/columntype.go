package chunk

import (
	"slices"

	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Column is what a program says of the chunks of a column.
type Column struct {
	Name      string
	Kind      program.Kind
	List      bool
	LeafPart  program.Part // The leaf of a map, also in a graph.
	Absent    bool         // Partitions may lack the column.
	FitsInt64 bool         // A uint64 of 2^63 or more fails the slice.
	Reading   program.Reading
	Rereads   bool // The rows of a task are read several times.
}

// repetitionLevel returns the greatest repetition level of the column's values.
func (c *Column) repetitionLevel() uint8 {
	switch {
	case c.LeafPart.OfMap() && c.List:
		return 2
	case c.LeafPart.OfMap() || c.List:
		return 1
	}
	return 0
}

// SetColumnType reads the chunk's type, which must be one that the unit decodes and the program expects.
func (t *Task) SetColumnType(chunk *program.ChunkType) error {
	if chunk.Absent {
		return t.setAbsentType(chunk)
	}
	if chunk.TypeLength > 1<<30 {
		return failure.Slice("a type length of %d", chunk.TypeLength)
	}
	t.ColumnType = format.ColumnType{
		Physical: format.Type(chunk.Physical), Codec: format.Codec(chunk.Codec), TypeLength: int32(chunk.TypeLength),
		BitWidth: chunk.BitWidth,
		Unsigned: chunk.Unsigned, List: chunk.MaxRep > 0, MaxDef: chunk.MaxDef, MaxRep: chunk.MaxRep,
		RepDef: chunk.ElementDef, EntryDef: chunk.EntryDef,
		RowsUncounted: chunk.RowsUncounted, AlwaysCompressed: chunk.AlwaysCompressed,
	}
	rep := t.Column.repetitionLevel()
	t.ColumnType.Flattened = rep == 1 && chunk.MaxRep > 1 // lists in lists are read as one list
	if err := t.ColumnType.Validate(); err != nil {
		if state := failure.StateOf(err); state == program.NoSupport {
			return failure.New(state, err)
		}
		return failure.Slice("column %q: %w", t.Column.Name, err)
	}
	got := parquetcolumn.KindOf(t.ColumnType.Kind())
	t.values = chunkReading{to: t.Column.Kind, reading: t.Column.Reading, physical: t.ColumnType.Physical,
		annotation: chunk.Annotation, unsigned64: chunk.Unsigned && t.ColumnType.Physical == format.Int64}
	t.brings = t.values.needed()
	if chunk.Annotation != program.NotAnnotated && t.Column.Reading == program.ReadStored {
		return failure.Slice("column %q: an annotated chunk, and the program reads chunks as they are stored",
			t.Column.Name)
	}
	if !parquetcolumn.Reads(program.Column{Kind: t.Column.Kind, Reading: t.Column.Reading}, t.ColumnType.Physical,
		chunk.Annotation) || t.ColumnType.MaxRep != rep && !t.ColumnType.Flattened {
		return failure.Slice("column %q: the chunk holds %v (repetition level %d), the program reads %v (%d)",
			t.Column.Name, got, t.ColumnType.MaxRep, t.Column.Kind, rep)
	}
	return nil
}

// rejectLargeUnsigned returns an error if an unsigned value of a block is 2^63 or more. row is the row of the block's
// first value.
func rejectLargeUnsigned(row uint64, b *decoder.Block) error {
	all := int64(0)
	for _, x := range b.I64 {
		all |= x
	}
	if all >= 0 {
		return nil
	}
	i := slices.IndexFunc(b.I64, func(x int64) bool { return x < 0 })
	return failure.Data("%d (in or behind row %d of the mini-batch) is an unsigned integer of 2^63 or more, which is not "+
		"an int64: to take it as a number begin with cast, as cast: float64, or write the column as float64; to take it as "+
		"an id begin with a hash, as hash_bucket",
		uint64(b.I64[i]), row)
}
