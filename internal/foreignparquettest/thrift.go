package foreignparquettest

import "encoding/binary"

// The compact protocol's types that the files need.
const (
	typeFalse  = 2
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// thrift writes the compact protocol. Fields are written in order of their identifiers, less than 16 apart.
type thrift struct {
	b    []byte
	last []int
}

func (w *thrift) begin() { w.last = append(w.last, 0) }

func (w *thrift) end() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

func (w *thrift) field(id, kind int) {
	last := &w.last[len(w.last)-1]
	w.b = append(w.b, byte((id-*last)<<4|kind))
	*last = id
}

func (w *thrift) zigzag(v int64) { w.b = binary.AppendUvarint(w.b, uint64(v<<1)^uint64(v>>63)) }

func (w *thrift) i32(id, v int) { w.field(id, typeI32); w.zigzag(int64(v)) }

func (w *thrift) i64(id, v int) { w.field(id, typeI64); w.zigzag(int64(v)) }

func (w *thrift) text(id int, v string) { w.field(id, typeBinary); w.rawText(v) }

func (w *thrift) rawText(v string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *thrift) list(id, element, n int) {
	w.field(id, typeList)
	if n < 15 {
		w.b = append(w.b, byte(n<<4|element))
		return
	}
	w.b = append(w.b, byte(0xf0|element))
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

func (w *thrift) structure(id int, fields func()) {
	w.field(id, typeStruct)
	w.element(fields)
}

func (w *thrift) element(fields func()) {
	w.begin()
	fields()
	w.end()
}
