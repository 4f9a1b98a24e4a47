package format

// The compact protocol's types, as they stand in field and list headers.
const (
	tStop   = 0
	tTrue   = 1
	tFalse  = 2
	tByte   = 3
	tI16    = 4
	tI32    = 5
	tI64    = 6
	tDouble = 7
	tBinary = 8
	tList   = 9
	tSet    = 10
	tMap    = 11
	tStruct = 12
	tUUID   = 13
)

// maxThriftDepth bounds the nesting of structures that are skipped; Parquet's own nest eight deep.
const maxThriftDepth = 32

// compact reads Thrift's compact protocol. The first fault sticks: every read after it yields zero, and every loop
// over fields ends. Counts are bounded by the bytes left, since no element is shorter than a byte.
type compact struct {
	b   []byte
	pos int
	err error
}

func (r *compact) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *compact) corrupt(what string) {
	if r.err == nil {
		r.err = corrupt("%s at byte %d of the structure", what, r.pos)
	}
}

func (r *compact) left() int { return len(r.b) - r.pos }

func (r *compact) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= len(r.b) {
		r.fail(ErrMoreInput)
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *compact) uvarint() uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		c := r.byte()
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
	r.corrupt("number longer than 64 bits")
	return 0
}

func (r *compact) zigzag() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// field reads a field's header. It returns tStop at the structure's end and after a fault. last is the identifier of
// the field before and is moved on.
func (r *compact) field(last *int32) byte {
	h := r.byte()
	if r.err != nil || h == tStop {
		return tStop
	}
	t := h & 15
	if t == tStop || t > tUUID {
		r.corrupt("unknown field type")
		return tStop
	}
	if d := h >> 4; d != 0 {
		*last += int32(d)
	} else {
		v := r.zigzag()
		if v < -1<<15 || v >= 1<<15 {
			r.corrupt("field identifier beyond 16 bits")
			return tStop
		}
		*last = int32(v)
	}
	if *last >= 1<<15 {
		r.corrupt("field identifier beyond 16 bits")
		return tStop
	}
	if r.err != nil {
		return tStop
	}
	return t
}

func (r *compact) want(t, wanted byte) bool {
	if t != wanted {
		r.corrupt("field of another type than the specification's")
	}
	return r.err == nil
}

func (r *compact) i32(t byte) int32 {
	if !r.want(t, tI32) {
		return 0
	}
	return r.int32()
}

func (r *compact) int32() int32 {
	v := r.zigzag()
	if v < -1<<31 || v >= 1<<31 {
		r.corrupt("number beyond 32 bits")
		return 0
	}
	return int32(v)
}

func (r *compact) i64(t byte) int64 {
	if !r.want(t, tI64) {
		return 0
	}
	return r.zigzag()
}

func (r *compact) bool(t byte) bool {
	if t != tTrue && t != tFalse {
		r.corrupt("field of another type than the specification's")
	}
	return t == tTrue
}

// binary returns a view of the bytes read.
func (r *compact) binary(t byte) []byte {
	if !r.want(t, tBinary) {
		return nil
	}
	return r.bytes()
}

func (r *compact) bytes() []byte {
	n := r.uvarint()
	if r.err != nil {
		return nil
	}
	if n > uint64(r.left()) {
		r.fail(ErrMoreInput)
		return nil
	}
	v := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return v
}

// list reads a list's header and returns how many elements follow; elem is the type that they must have.
func (r *compact) list(t, elem byte) int {
	if !r.want(t, tList) {
		return 0
	}
	n, e := r.listHeader()
	if n > 0 && e != elem {
		r.corrupt("list of another type than the specification's")
		return 0
	}
	return n
}

func (r *compact) listHeader() (int, byte) {
	h := r.byte()
	n := uint64(h >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if r.err != nil {
		return 0, 0
	}
	if n > uint64(r.left()) {
		r.fail(ErrMoreInput)
		return 0, 0
	}
	return int(n), h & 15
}

// skip passes over a value of a field of type t.
func (r *compact) skip(t byte) { r.skipAt(t, 0) }

func (r *compact) skipAt(t byte, depth int) {
	if depth > maxThriftDepth {
		r.corrupt("structures nested too deep")
	}
	if r.err != nil {
		return
	}
	switch t {
	case tTrue, tFalse: // the value is the type
	case tByte:
		r.byte()
	case tI16, tI32, tI64:
		r.uvarint()
	case tDouble:
		r.skipBytes(8)
	case tUUID:
		r.skipBytes(16)
	case tBinary:
		r.bytes()
	case tList, tSet:
		n, e := r.listHeader()
		for ; n > 0 && r.err == nil; n-- {
			r.skipElement(e, depth)
		}
	case tMap:
		r.skipMap(depth)
	case tStruct:
		var last int32
		for t := r.field(&last); t != tStop; t = r.field(&last) {
			r.skipAt(t, depth+1)
		}
	default:
		r.corrupt("unknown type")
	}
}

// skipElement passes over an element of a list or map, where a boolean takes a byte of its own.
func (r *compact) skipElement(e byte, depth int) {
	if e == tTrue || e == tFalse {
		e = tByte
	}
	r.skipAt(e, depth+1)
}

func (r *compact) skipMap(depth int) {
	n := r.uvarint()
	if n == 0 || r.err != nil {
		return
	}
	kv := r.byte()
	if n > uint64(r.left()) {
		r.fail(ErrMoreInput)
	}
	for ; n > 0 && r.err == nil; n-- {
		r.skipElement(kv>>4, depth)
		r.skipElement(kv&15, depth)
	}
}

func (r *compact) skipBytes(n int) {
	if n > r.left() {
		r.fail(ErrMoreInput)
		return
	}
	r.pos += n
}
