package thrift

import "encoding/binary"

// Writer writes the compact protocol to Bytes.
type Writer struct {
	Bytes []byte
	last  []int32
}

// Begin begins a structure.
func (w *Writer) Begin() { w.last = append(w.last, 0) }

// End ends a structure.
func (w *Writer) End() {
	w.Bytes = append(w.Bytes, 0)
	w.last = w.last[:len(w.last)-1]
}

// Field writes the header of a field.
func (w *Writer) Field(id int32, t byte) {
	last := &w.last[len(w.last)-1]
	if d := id - *last; d > 0 && d < 16 {
		w.Bytes = append(w.Bytes, byte(d)<<4|t)
	} else {
		w.Bytes = append(w.Bytes, t)
		w.Zigzag(int64(id))
	}
	*last = id
}

// Zigzag writes a signed number.
func (w *Writer) Zigzag(v int64) { w.Bytes = binary.AppendUvarint(w.Bytes, uint64(v<<1)^uint64(v>>63)) }

// Int32 writes a field.
func (w *Writer) Int32(id, v int32) { w.Field(id, TypeI32); w.Zigzag(int64(v)) }

// Int64 writes a field.
func (w *Writer) Int64(id int32, v int64) { w.Field(id, typeI64); w.Zigzag(v) }

// Bool writes a field, whose value is its type.
func (w *Writer) Bool(id int32, v bool) {
	if v {
		w.Field(id, typeTrue)
	} else {
		w.Field(id, typeFalse)
	}
}

// String writes a field.
func (w *Writer) String(id int32, v string) {
	w.Field(id, TypeBinary)
	w.AppendString(v)
}

// AppendString writes an element of a list of strings.
func (w *Writer) AppendString(v string) {
	w.Bytes = binary.AppendUvarint(w.Bytes, uint64(len(v)))
	w.Bytes = append(w.Bytes, v...)
}

// List writes the header of a field that is a list of n elements.
func (w *Writer) List(id int32, elem byte, n int) {
	w.Field(id, typeList)
	if n < 15 {
		w.Bytes = append(w.Bytes, byte(n)<<4|elem)
		return
	}
	w.Bytes = append(w.Bytes, 0xf0|elem)
	w.Bytes = binary.AppendUvarint(w.Bytes, uint64(n))
}

// These are the compact protocol's types, as field and list headers have them.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	TypeI32    = 5
	typeI64    = 6
	typeDouble = 7
	TypeBinary = 8
	typeList   = 9
	typeMap    = 11
	TypeStruct = 12
	typeUUID   = 13
)
