package wire

import (
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// A result on the wire:
//
//	  0  magic "MRES", major u16, minor u16, length u32, tasks u32
//	 16  state u16, length of message u16, 4 reserved
//	 24  values, decode, transform, bytes in, bytes out, dropped, wait, move u64 each
//	 88  absent key: value i64, row u32, key u32, given u8, 7 reserved
//	112  16 reserved
//	128  tasks, 64 bytes each: state u16, 2 reserved, rows u32, values u64, need u64, cursor as in a slice,
//	     ready u32, page u32; then the message
//
// Wait, move, ready and page are zero in version 1.0, the absent key before version 1.2, and a cursor's value at before
// version 1.3.

// ResultSize returns the most bytes that the result of a slice with the given number of tasks can take, with its
// longest message.
func ResultSize(tasks int) int { return ResultHeader + ResultTask*tasks + program.MaxMessage }

// AppendResult appends the result's wire form to b, at most ResultSize(len(Tasks)) bytes. A message longer than
// MaxMessage is shortened.
func AppendResult(b []byte, r *program.Result) []byte {
	start := len(b)
	msg := shortenMessage(r.Message)
	size := ResultHeader + ResultTask*len(r.Tasks) + len(msg)
	b = slices.Grow(b, size)[:start+size]
	h := b[start : start+ResultHeader]
	writeCommonHeader(h, resultMagic, leastMinorOfResult(r), size, len(r.Tasks))
	le.PutUint16(h[16:], uint16(r.State))
	le.PutUint16(h[18:], uint16(len(msg)))
	le.PutUint32(h[20:], 0)
	le.PutUint64(h[24:], r.Values)
	le.PutUint64(h[32:], r.Decode)
	le.PutUint64(h[40:], r.Transform)
	le.PutUint64(h[48:], r.BytesIn)
	le.PutUint64(h[56:], r.BytesOut)
	le.PutUint64(h[64:], r.Dropped)
	le.PutUint64(h[waitOffset:], r.Wait)
	le.PutUint64(h[waitOffset+8:], r.Move)
	clear(h[absentOffset:])
	if a := r.AbsentKey; a.Given {
		le.PutUint64(h[absentOffset:], uint64(a.Value))
		le.PutUint32(h[absentOffset+8:], a.Row)
		le.PutUint32(h[absentOffset+12:], a.Key)
		h[absentOffset+16] = 1
	}
	for i := range r.Tasks {
		encodeTaskResult(&r.Tasks[i], b[start+ResultHeader+ResultTask*i:][:ResultTask])
	}
	copy(b[start+size-len(msg):], msg)
	return b
}

// leastMinorOfResult returns the least minor version that can express the result.
func leastMinorOfResult(r *program.Result) int {
	switch {
	case slices.ContainsFunc(r.Tasks, func(t program.TaskResult) bool { return t.Cursor.ValueAt != 0 }):
		return 3
	case r.AbsentKey.Given:
		return 2
	}
	return 1
}

// waitOffset is where a result has Wait, and Move behind it.
const waitOffset = 72

// absentOffset is where a result has AbsentKey.
const absentOffset = 88

// Stamp writes Wait and Move, in nanoseconds, into a marshalled result. The caller of the engine measures them,
// because the engine does not know them. It does nothing where b does not begin with a result.
func Stamp(b []byte, wait, move uint64) {
	if len(b) >= ResultHeader && string(b[:4]) == resultMagic {
		le.PutUint64(b[waitOffset:], wait)
		le.PutUint64(b[waitOffset+8:], move)
	}
}

// shortenMessage shortens a message to MaxMessage bytes, between characters.
func shortenMessage(msg string) string {
	if len(msg) <= program.MaxMessage {
		return msg
	}
	n := program.MaxMessage
	for n > program.MaxMessage-utf8.UTFMax && !utf8.RuneStart(msg[n]) {
		n--
	}
	return msg[:n]
}

// UnmarshalResult reads a result from the start of b. b may hold further bytes, because a host fetches ResultSize
// bytes.
func UnmarshalResult(b []byte) (*program.Result, error) {
	r := new(program.Result)
	if err := DecodeResult(r, b); err != nil {
		return nil, err
	}
	return r, nil
}

// DecodeResult reads a result into r as UnmarshalResult does, and reuses r.Tasks. After an error the content of r is
// undefined.
func DecodeResult(r *program.Result, b []byte) error {
	in := reader{what: "result", b: b}
	h := in.takeBytes(ResultHeader, "header")
	n, size := in.readCommonHeader(h, resultMagic, ResultHeader, ResultTask)
	if in.err != nil {
		return in.err
	}
	msg := int(le.Uint16(h[18:]))
	if msg > program.MaxMessage || size != ResultHeader+ResultTask*n+msg {
		return corruptError(in.what, "says it has %d bytes, %d tasks and a message of %d", size, n, msg)
	}
	r.State = program.State(le.Uint16(h[16:]))
	r.Values = le.Uint64(h[24:])
	r.Decode = le.Uint64(h[32:])
	r.Transform = le.Uint64(h[40:])
	r.BytesIn = le.Uint64(h[48:])
	r.BytesOut = le.Uint64(h[56:])
	r.Dropped = le.Uint64(h[64:])
	in.checkZeros(h[20:24], "header")
	r.Wait, r.Move = le.Uint64(h[waitOffset:]), le.Uint64(h[waitOffset+8:])
	r.AbsentKey = program.AbsentKey{}
	if a := h[absentOffset:]; in.readBool(a[16], "absent key") {
		r.AbsentKey = program.AbsentKey{Given: true, Value: int64(le.Uint64(a)), Row: le.Uint32(a[8:]),
			Key: le.Uint32(a[12:])}
		in.checkZeros(a[17:], "header")
	} else {
		in.checkZeros(a, "header")
	}
	r.Tasks = slices.Grow(r.Tasks[:0], n)[:n]
	for i := range r.Tasks {
		decodeTaskResult(&r.Tasks[i], &in)
	}
	r.Message = string(in.takeBytes(uint64(msg), "message"))
	return in.err
}

func encodeTaskResult(t *program.TaskResult, b []byte) {
	le.PutUint16(b, uint16(t.State))
	le.PutUint16(b[2:], 0)
	le.PutUint32(b[4:], t.Rows)
	le.PutUint64(b[8:], t.Values)
	le.PutUint64(b[16:], t.Need)
	encodeCursor(&t.Cursor, b[24:56])
	le.PutUint32(b[56:], t.RowsInWindow)
	le.PutUint32(b[60:], t.Page)
}

func decodeTaskResult(t *program.TaskResult, r *reader) {
	b := r.takeBytes(ResultTask, "task")
	if r.err != nil {
		return
	}
	r.checkZeros(b[2:4], "task")
	t.State, t.Rows = program.State(le.Uint16(b)), le.Uint32(b[4:])
	t.Values, t.Need = le.Uint64(b[8:]), le.Uint64(b[16:])
	decodeCursor(&t.Cursor, b[24:56])
	t.RowsInWindow, t.Page = le.Uint32(b[56:]), le.Uint32(b[60:])
}
