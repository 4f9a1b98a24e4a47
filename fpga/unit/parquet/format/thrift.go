package format

// These are the compact protocol's types, as field and list headers have them.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt16  = 4
	thriftInt32  = 5
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxThriftDepth bounds the nesting of structures that are skipped; Parquet's own nest eight deep.
const maxThriftDepth = 32

// compactReader reads Thrift's compact protocol. The first error sticks: every read after it returns zero, and every
// loop over fields ends. Counts are bounded by the bytes left, because every element takes at least a byte.
type compactReader struct {
	src      []byte
	position int
	err      error
}

func (r *compactReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *compactReader) failCorrupt(what string) {
	if r.err == nil {
		r.err = corrupt("%s at byte %d of the structure", what, r.position)
	}
}

func (r *compactReader) bytesLeft() int { return len(r.src) - r.position }

func (r *compactReader) readByte() byte {
	if r.err != nil {
		return 0
	}
	if r.position >= len(r.src) {
		r.fail(ErrMoreInput)
		return 0
	}
	c := r.src[r.position]
	r.position++
	return c
}

func (r *compactReader) readUvarint() uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		c := r.readByte()
		if r.err != nil {
			return 0
		}
		if shift == 63 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.failCorrupt("number longer than 64 bits")
	return 0
}

func (r *compactReader) readZigzag() int64 {
	v := r.readUvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// nextField reads a field's header. It returns thriftStop at the structure's end and after an error. last is the
// identifier of the field before, and becomes that of the field.
func (r *compactReader) nextField(last *int32) byte {
	h := r.readByte()
	if r.err != nil || h == thriftStop {
		return thriftStop
	}
	t := h & 15
	if t == thriftStop || t > thriftUUID {
		r.failCorrupt("unknown field type")
		return thriftStop
	}
	if d := h >> 4; d != 0 {
		*last += int32(d)
	} else {
		v := r.readZigzag()
		if v < -1<<15 || v >= 1<<15 {
			r.failCorrupt("field identifier beyond 16 bits")
			return thriftStop
		}
		*last = int32(v)
	}
	if *last >= 1<<15 {
		r.failCorrupt("field identifier beyond 16 bits")
		return thriftStop
	}
	if r.err != nil {
		return thriftStop
	}
	return t
}

// expectType notes an error unless a field has the type that the specification gives it.
func (r *compactReader) expectType(t, wanted byte) bool {
	if t != wanted {
		r.failCorrupt("field of another type than the specification's")
	}
	return r.err == nil
}

func (r *compactReader) int32Field(t byte) int32 {
	if !r.expectType(t, thriftInt32) {
		return 0
	}
	return r.readInt32()
}

func (r *compactReader) readInt32() int32 {
	v := r.readZigzag()
	if v < -1<<31 || v >= 1<<31 {
		r.failCorrupt("number beyond 32 bits")
		return 0
	}
	return int32(v)
}

func (r *compactReader) int64Field(t byte) int64 {
	if !r.expectType(t, thriftInt64) {
		return 0
	}
	return r.readZigzag()
}

func (r *compactReader) boolField(t byte) bool {
	if t != thriftTrue && t != thriftFalse {
		r.failCorrupt("field of another type than the specification's")
	}
	return t == thriftTrue
}

// binaryField returns the bytes of a field as a view.
func (r *compactReader) binaryField(t byte) []byte {
	if !r.expectType(t, thriftBinary) {
		return nil
	}
	return r.readBytes()
}

func (r *compactReader) readBytes() []byte {
	n := r.readUvarint()
	if r.err != nil {
		return nil
	}
	if n > uint64(r.bytesLeft()) {
		r.fail(ErrMoreInput)
		return nil
	}
	v := r.src[r.position : r.position+int(n)]
	r.position += int(n)
	return v
}

// listField reads a list's header and returns how many elements follow. element is the type that they must have.
func (r *compactReader) listField(t, element byte) int {
	if !r.expectType(t, thriftList) {
		return 0
	}
	n, e := r.readListHeader()
	if n > 0 && e != element {
		r.failCorrupt("list of another type than the specification's")
		return 0
	}
	return n
}

func (r *compactReader) readListHeader() (int, byte) {
	h := r.readByte()
	n := uint64(h >> 4)
	if n == 15 {
		n = r.readUvarint()
	}
	if r.err != nil {
		return 0, 0
	}
	if n > uint64(r.bytesLeft()) {
		r.fail(ErrMoreInput)
		return 0, 0
	}
	return int(n), h & 15
}

// skipField skips a value of a field of type t.
func (r *compactReader) skipField(t byte) { r.skipValue(t, 0) }

func (r *compactReader) skipValue(t byte, depth int) {
	if depth > maxThriftDepth {
		r.failCorrupt("structures nested too deep")
	}
	if r.err != nil {
		return
	}
	switch t {
	case thriftTrue, thriftFalse: // the value is the type
	case thriftByte:
		r.readByte()
	case thriftInt16, thriftInt32, thriftInt64:
		r.readUvarint()
	case thriftDouble:
		r.skipBytes(8)
	case thriftUUID:
		r.skipBytes(16)
	case thriftBinary:
		r.readBytes()
	case thriftList, thriftSet:
		n, e := r.readListHeader()
		for ; n > 0 && r.err == nil; n-- {
			r.skipElement(e, depth)
		}
	case thriftMap:
		r.skipMap(depth)
	case thriftStruct:
		var last int32
		for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
			r.skipValue(t, depth+1)
		}
	default:
		r.failCorrupt("unknown type")
	}
}

// skipElement skips an element of a list or map, in which a boolean takes a byte of its own.
func (r *compactReader) skipElement(e byte, depth int) {
	if e == thriftTrue || e == thriftFalse {
		e = thriftByte
	}
	r.skipValue(e, depth+1)
}

func (r *compactReader) skipMap(depth int) {
	n := r.readUvarint()
	if n == 0 || r.err != nil {
		return
	}
	kv := r.readByte()
	if n > uint64(r.bytesLeft()) {
		r.fail(ErrMoreInput)
	}
	for ; n > 0 && r.err == nil; n-- {
		r.skipElement(kv>>4, depth)
		r.skipElement(kv&15, depth)
	}
}

func (r *compactReader) skipBytes(n int) {
	if n > r.bytesLeft() {
		r.fail(ErrMoreInput)
		return
	}
	r.position += n
}
