package arrowipc

import (
	"encoding/binary"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/millrace/millrace/sdk/tensor"
)

// Numbers of Arrow's format, from its Schema.fbs, Message.fbs and File.fbs.
const (
	metadataV5 = 4 // MetadataVersion

	headerSchema      = 1 // MessageHeader
	headerRecordBatch = 3

	typeInt           = 2 // Type
	typeFloatingPoint = 3
	typeLargeList     = 21

	precisionSingle = 1 // Precision

	alignment = 64 // bytes: of every buffer in the file
)

// magic begins a file, padded to 8 bytes, and ends it.
const magic = "ARROW1"

// field is a column: large_list<item: element>, neither with nulls.
type field struct {
	name    string
	element tensor.DType
}

// keyValue is an entry of metadata.
type keyValue struct{ key, value string }

// column is the one row of a column in a record batch: a list.
type column struct {
	count   int64  // How many values the list has.
	offsets []byte // where the list begins and ends, as two int64
	values  []byte
}

// block is where a record batch lies in the file.
type block struct {
	offset   int64
	metadata int32 // bytes, with the mark and the length before them and the padding behind them
	body     int64 // bytes
}

// table writes a table of FlatBuffers whose slots the functions write.
func table(b *flatbuffers.Builder, slots int, write ...func()) flatbuffers.UOffsetT {
	b.StartObject(slots)
	for _, slot := range write {
		slot()
	}
	return b.EndObject()
}

// vectorOfTables writes a vector of tables that were written before.
func vectorOfTables(b *flatbuffers.Builder, tables []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(flatbuffers.SizeUOffsetT, len(tables), flatbuffers.SizeUOffsetT)
	for _, t := range slices.Backward(tables) {
		b.PrependUOffsetT(t)
	}
	return b.EndVector(len(tables))
}

// writeMetadata writes the entries as a vector of KeyValue.
func writeMetadata(b *flatbuffers.Builder, metadata []keyValue) flatbuffers.UOffsetT {
	entries := make([]flatbuffers.UOffsetT, len(metadata))
	for i, m := range metadata {
		key, value := b.CreateString(m.key), b.CreateString(m.value)
		entries[i] = table(b, 2,
			func() { b.PrependUOffsetTSlot(0, key, 0) },
			func() { b.PrependUOffsetTSlot(1, value, 0) })
	}
	return vectorOfTables(b, entries)
}

// writeField writes a Field without nulls. Its type is a table that was written before, and so are its children.
func writeField(b *flatbuffers.Builder, name string, typeNumber byte, typeTable flatbuffers.UOffsetT,
	children []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	text, list := b.CreateString(name), vectorOfTables(b, children)
	return table(b, 7,
		func() { b.PrependUOffsetTSlot(0, text, 0) },
		func() { b.PrependByteSlot(2, typeNumber, 0) },
		func() { b.PrependUOffsetTSlot(3, typeTable, 0) },
		func() { b.PrependUOffsetTSlot(5, list, 0) })
}

// writeElement writes the Field of the values of lists.
func writeElement(b *flatbuffers.Builder, element tensor.DType) flatbuffers.UOffsetT {
	if element == tensor.Float32 {
		single := table(b, 1, func() { b.PrependInt16Slot(0, precisionSingle, 0) })
		return writeField(b, "item", typeFloatingPoint, single, nil)
	}
	integer := table(b, 2,
		func() { b.PrependInt32Slot(0, int32(8*element.Size()), 0) },
		func() { b.PrependBoolSlot(1, element != tensor.BFloat16, false) }) // the bits of bfloat16 are unsigned
	return writeField(b, "item", typeInt, integer, nil)
}

// writeSchema writes the Schema of a file.
func writeSchema(b *flatbuffers.Builder, fields []field, metadata []keyValue) flatbuffers.UOffsetT {
	columns := make([]flatbuffers.UOffsetT, len(fields))
	for i, f := range fields {
		element := writeElement(b, f.element)
		columns[i] = writeField(b, f.name, typeLargeList, table(b, 0), []flatbuffers.UOffsetT{element})
	}
	list, entries := vectorOfTables(b, columns), writeMetadata(b, metadata)
	return table(b, 4,
		func() { b.PrependUOffsetTSlot(1, list, 0) },
		func() { b.PrependUOffsetTSlot(2, entries, 0) })
}

// message returns a Message around a header that was written before.
func message(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body int64, metadata []keyValue) []byte {
	var entries flatbuffers.UOffsetT
	if len(metadata) > 0 {
		entries = writeMetadata(b, metadata)
	}
	b.Finish(table(b, 5,
		func() { b.PrependInt16Slot(0, metadataV5, 0) },
		func() { b.PrependByteSlot(1, kind, 0) },
		func() { b.PrependUOffsetTSlot(2, header, 0) },
		func() { b.PrependInt64Slot(3, body, 0) },
		func() { b.PrependUOffsetTSlot(4, entries, 0) }))
	return b.FinishedBytes()
}

// schemaMessage returns the Message of a file's schema.
func schemaMessage(fields []field, metadata []keyValue) []byte {
	b := flatbuffers.NewBuilder(1 << 10)
	return message(b, headerSchema, writeSchema(b, fields, metadata), 0, nil)
}

// recordMessage returns the Message of a record batch of one row, and the length of the body that follows it: of each
// column the offsets and the values, each padded to a multiple of alignment.
func recordMessage(columns []column, metadata []keyValue) (header []byte, body int64) {
	b := flatbuffers.NewBuilder(1 << 10)
	var buffers [][2]int64 // offset and length
	add := func(length int64) {
		buffers = append(buffers, [2]int64{body, length})
		body = aligned(body + length)
	}
	for _, c := range columns {
		add(0) // no row is null
		add(int64(len(c.offsets)))
		add(0) // no value is null
		add(int64(len(c.values)))
	}
	b.StartVector(16, len(buffers), 8)
	for _, buffer := range slices.Backward(buffers) {
		writePair(b, buffer[0], buffer[1])
	}
	places := b.EndVector(len(buffers))
	b.StartVector(16, 2*len(columns), 8)
	for _, c := range slices.Backward(columns) {
		writePair(b, c.count, 0) // the values, none of which is null
		writePair(b, 1, 0)       // the row
	}
	nodes := b.EndVector(2 * len(columns))
	batch := table(b, 5,
		func() { b.PrependInt64Slot(0, 1, 0) },
		func() { b.PrependUOffsetTSlot(1, nodes, 0) },
		func() { b.PrependUOffsetTSlot(2, places, 0) })
	return message(b, headerRecordBatch, batch, body, metadata), body
}

// writePair writes a struct of two int64.
func writePair(b *flatbuffers.Builder, first, second int64) {
	b.Prep(8, 16)
	b.PrependInt64(second)
	b.PrependInt64(first)
}

// footer returns the Footer of a file.
func footer(fields []field, metadata []keyValue, records []block) []byte {
	b := flatbuffers.NewBuilder(1 << 10)
	schema := writeSchema(b, fields, metadata)
	dictionaries := vectorOfTables(b, nil)
	b.StartVector(24, len(records), 8)
	for _, r := range slices.Backward(records) {
		b.Prep(8, 24)
		b.PrependInt64(r.body)
		b.Pad(4)
		b.PrependInt32(r.metadata)
		b.PrependInt64(r.offset)
	}
	list := b.EndVector(len(records))
	b.Finish(table(b, 5,
		func() { b.PrependInt16Slot(0, metadataV5, 0) },
		func() { b.PrependUOffsetTSlot(1, schema, 0) },
		func() { b.PrependUOffsetTSlot(2, dictionaries, 0) },
		func() { b.PrependUOffsetTSlot(3, list, 0) }))
	return b.FinishedBytes()
}

// aligned returns the first multiple of alignment from n on.
func aligned(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// encapsulated returns a Message as it lies in a file at a position, which is a multiple of 8: behind a mark and its
// length, and padded so that what follows it is aligned.
func encapsulated(message []byte, position int64) []byte {
	const prefix = 8
	whole := make([]byte, aligned(position+prefix+int64(len(message)))-position)
	binary.LittleEndian.PutUint32(whole, 0xffffffff)
	binary.LittleEndian.PutUint32(whole[4:], uint32(len(whole)-prefix))
	copy(whole[prefix:], message)
	return whole
}
