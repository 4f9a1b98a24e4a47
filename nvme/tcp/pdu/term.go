package pdu

import "fmt"

// Fatal is a fatal error status (FES): why a connection is terminated.
type Fatal uint16

// The fatal error statuses.
const (
	FatalHeader       Fatal = 1 // invalid PDU header field
	FatalSequence     Fatal = 2 // PDU sequence error
	FatalHeaderDigest Fatal = 3
	FatalRange        Fatal = 4 // data transfer out of range
	FatalLimit        Fatal = 5 // R2T limit or data transfer limit exceeded
	FatalUnsupported  Fatal = 6 // unsupported parameter
)

var fatalNames = map[Fatal]string{
	FatalHeader: "invalid PDU header field", FatalSequence: "PDU sequence error", FatalHeaderDigest: "header digest error",
	FatalRange: "data transfer out of range", FatalLimit: "R2T or data transfer limit exceeded",
	FatalUnsupported: "unsupported parameter",
}

// String names the status.
func (f Fatal) String() string {
	if n, ok := fatalNames[f]; ok {
		return n
	}
	return fmt.Sprintf("fatal error status %d", uint16(f))
}

// Offsets of the common header's fields, as a termination request names them.
const (
	fieldType   = 0
	fieldFlags  = 1
	fieldSize   = 2
	fieldOffset = 3
	fieldLength = 4
)

// Error is a breach of the protocol that ends the connection.
type Error struct {
	Status Fatal
	Info   uint32 // FEI: the offset of the field that is to blame, or the digest that was received
	Why    string // one line for a log
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Status, e.Why) }

// Invalid makes the error of a header field, by its offset in the PDU, that holds what it must not.
func Invalid(field uint32, format string, args ...any) error { return invalid(field, format, args...) }

func invalid(field uint32, format string, args ...any) error {
	return &Error{Status: FatalHeader, Info: field, Why: fmt.Sprintf(format, args...)}
}

// Terminate makes a whole termination request of type t from an error. header is that of the PDU at fault; at most
// MaxTermData bytes of it are copied.
func Terminate(t Type, e *Error, header []byte) []byte {
	header = header[:min(len(header), MaxTermData)]
	b := make([]byte, TermSize, TermSize+len(header))
	le.PutUint16(b[8:], uint16(e.Status))
	le.PutUint32(b[10:], e.Info)
	b = append(b, header...)
	Header{Type: t, Size: TermSize, Length: uint32(len(b))}.Put(b)
	return b
}

// ParseTerminate reads what a termination request says from its header.
func ParseTerminate(b []byte) *Error {
	_ = b[TermSize-1]
	return &Error{Status: Fatal(le.Uint16(b[8:])), Info: le.Uint32(b[10:]), Why: "said by the other side"}
}
