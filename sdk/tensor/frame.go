package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/millrace/millrace/internal/crc32c"
)

// ErrFrame says that bytes are not the frame of a mini-batch.
var ErrFrame = errors.New("tensor: frame")

// FrameFormat is the value of "format" in a frame's metadata.
const FrameFormat = "millrace.frame/1"

// FrameFormat2 is the format of frames whose dense tensor is bfloat16. Readers that know only FrameFormat refuse it.
const FrameFormat2 = "millrace.frame/2"

// FrameFormat3 is the format of frames of deduplicated mini-batches.
const FrameFormat3 = "millrace.frame/3"

// frameFormat returns the format of the frames of a schema's mini-batches: the first that can hold them.
func frameFormat(s *Schema) string {
	if s.Sets() > 0 {
		return FrameFormat3
	}
	if len(s.Dense) > 0 && s.DenseDType() == BFloat16 {
		return FrameFormat2
	}
	return FrameFormat
}

// MaxFrameHeader is the most bytes that a frame's JSON header may have, padding included.
const MaxFrameHeader = 64 << 20

// Frame is a mini-batch ready to be sent: a header and views of the mini-batch's tensors, which must not be released
// before the frame is written.
//
// The bytes are a safetensors file:
//
//	length of the JSON, u64 little-endian | JSON, ended by spaces so that what follows starts at a multiple of 64 |
//	tensors, without gaps, in the order of Extents
//
// The JSON has no white space inside and its fields in this order: __metadata__, then the tensors as they lie, each
// with dtype (F32, I32, I64, BF16), shape and data_offsets. Metadata, all strings, in this order:
//
//	format          millrace.frame/1; millrace.frame/2 where dense is bfloat16; millrace.frame/3 with sets
//	name            JOB/EPOCH/NUMBER, the job's digest in hex
//	shapes          {"rows":B,"dense":D,"keys":F,"values":N}
//	dense           JSON list of the dense features' names
//	keys            JSON list of the keys' names
//	num_embeddings  JSON list, one for each key; 0 if the key's ids are not bounded
//	list            JSON list, one for each key; false if every row has exactly one id
//	ids             int32 or int64 (only with keys)
//	lengths         ones (only with keys, and only if every length is 1 and kjt.lengths is left out)
//	sets            JSON list, one for each key: the set in which it is deduplicated, or 0 (only if there are sets)
//	unique          JSON list, one for each set: how many different rows it has (only if there are sets)
//	crc32c          of the tensors' bytes, 8 hex digits
//
// Strings escape only ", \ and characters below space (as \u00xx). There is nothing else in a frame, so one mini-batch
// has one frame.
type Frame struct {
	Header []byte   // length and JSON, a multiple of 64 bytes
	Data   [][]byte // views, in order
}

// EncodeFrame returns a mini-batch's frame. It validates the mini-batch; the error wraps ErrShape.
func EncodeFrame(m *MiniBatch) (Frame, error) {
	if err := m.Validate(); err != nil {
		return Frame{}, fmt.Errorf("frame of mini-batch %v: %w", m.Name, err)
	}
	if m.Unique == nil && m.Schema.Sets() > 0 {
		return Frame{}, shapeError("frame of mini-batch %v: it is not deduplicated yet", m.Name)
	}
	e, err := layout(m.Schema, m.Rows, m.Values(), m.Unique, 1)
	if err != nil {
		return Frame{}, fmt.Errorf("frame of mini-batch %v: %w", m.Name, err)
	}
	f := Frame{Data: m.views(e)}
	var crc uint32
	for _, d := range f.Data {
		crc = crc32c.Update(crc, d)
	}
	f.Header = appendHeader(nil, m.Name, m.Schema, m.Rows, m.Values(), m.Unique, e, crc)
	if len(f.Header) > MaxFrameHeader+8 {
		return Frame{}, shapeError("frame of mini-batch %v: the header has %d bytes, at most %d", m.Name,
			len(f.Header)-8, MaxFrameHeader)
	}
	return f, nil
}

// Len returns the length of the whole frame in bytes.
func (f Frame) Len() int64 {
	n := int64(len(f.Header))
	for _, d := range f.Data {
		n += int64(len(d))
	}
	return n
}

// WriteTo writes the frame without copying it. If w is a network connection it uses writev.
func (f Frame) WriteTo(w io.Writer) (int64, error) {
	bufs := make(net.Buffers, 0, 1+len(f.Data))
	bufs = append(bufs, f.Header)
	for _, d := range f.Data {
		if len(d) > 0 {
			bufs = append(bufs, d)
		}
	}
	n, err := bufs.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("write frame: %w", err)
	}
	return n, nil
}

// AppendFrame appends a mini-batch's frame to dst, which it may grow.
func AppendFrame(dst []byte, m *MiniBatch) ([]byte, error) {
	f, err := EncodeFrame(m)
	if err != nil {
		return dst, err
	}
	dst = append(dst, f.Header...)
	for _, d := range f.Data {
		dst = append(dst, d...)
	}
	return dst, nil
}

// safetensors returns the name of the type in the safetensors format.
func (d DType) safetensors() string {
	switch d {
	case Float32:
		return "F32"
	case Int32:
		return "I32"
	case Int64:
		return "I64"
	case BFloat16:
		return "BF16"
	}
	return ""
}

// appendShapes appends the header's JSON up to the number of rows.
func appendShapes(b []byte, name Name, s *Schema) []byte {
	b = append(b, `{"__metadata__":{"format":"`+frameFormat(s)+`","name":"`...)
	b = append(b, name.String()...)
	return append(b, `","shapes":"{\"rows\":`...)
}

// appendHeader appends a frame's length and JSON.
func appendHeader(b []byte, name Name, s *Schema, rows, values int, unique []int32, e Extents, crc uint32) []byte {
	start := len(b)
	b = append(b, make([]byte, 8)...)
	b = appendShapes(b, name, s)
	b = fmt.Appendf(b, `%d,\"dense\":%d,\"keys\":%d,\"values\":%d}`, rows, len(s.Dense), len(s.Keys), values)
	var list []byte // a JSON text inside a JSON string
	for i, d := range s.Dense {
		list = appendJSON(comma(list, i), d)
	}
	b = appendMeta(b, "dense", list)
	list = list[:0]
	for i := range s.Keys {
		list = appendJSON(comma(list, i), s.Keys[i].Name)
	}
	b = appendMeta(b, "keys", list)
	list = list[:0]
	for i := range s.Keys {
		list = strconv.AppendInt(comma(list, i), s.Keys[i].NumEmbeddings, 10)
	}
	b = appendMeta(b, "num_embeddings", list)
	list = list[:0]
	for i := range s.Keys {
		list = strconv.AppendBool(comma(list, i), s.Keys[i].List)
	}
	b = appendMeta(b, "list", list)
	b = append(b, '"')
	if len(s.Keys) > 0 {
		b = append(b, `,"ids":"`+s.IDs.String()+`"`...)
		if s.Fixed() {
			b = append(b, `,"lengths":"ones"`...)
		}
	}
	if unique != nil {
		list = list[:0]
		for i := range s.Keys {
			list = strconv.AppendInt(comma(list, i), int64(s.Keys[i].Set), 10)
		}
		b = append(append(append(b, `,"sets":"[`...), list...), `]"`...)
		list = list[:0]
		for i, n := range unique {
			list = strconv.AppendInt(comma(list, i), int64(n), 10)
		}
		b = append(append(append(b, `,"unique":"[`...), list...), `]"`...)
	}
	b = fmt.Appendf(b, `,"crc32c":"%08x"}`, crc)
	for _, t := range e.Tensors {
		b = append(b, `,"`+t.Name+`":{"dtype":"`+t.DType.safetensors()+`","shape":[`...)
		for i, dim := range t.Shape {
			b = strconv.AppendInt(comma(b, i), dim, 10)
		}
		b = fmt.Appendf(b, `],"data_offsets":[%d,%d]}`, t.Offset, t.Offset+t.Bytes)
	}
	b = append(b, '}')
	for (len(b)-start)%Align != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b[start:], uint64(len(b)-start-8))
	return b
}

// appendMeta ends the previous JSON string and begins a string that holds a JSON list.
func appendMeta(b []byte, name string, list []byte) []byte {
	b = append(b, `","`+name+`":"[`...)
	b = appendEscaped(b, string(list))
	return append(b, ']')
}

// comma appends a comma before every element but the first.
func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// appendJSON appends s as a JSON string.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendEscaped escapes a JSON string. It does not use encoding/json, because frames must stay the same in every
// release of Go.
func appendEscaped(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}
