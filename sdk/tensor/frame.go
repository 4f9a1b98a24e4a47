package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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

// FrameFormat4 is the format of frames of fragments of mini-batches. Whoever knows no fragments refuses it.
const FrameFormat4 = "millrace.frame/4"

// frameFormat returns the format of the frames of a schema's mini-batches, or of their fragments: the first that can
// hold them.
func frameFormat(s *Schema, fragment Fragment) string {
	if fragment != (Fragment{}) {
		return FrameFormat4
	}
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
//	format          millrace.frame/1; millrace.frame/2 where dense is bfloat16; millrace.frame/3 with sets;
//	                millrace.frame/4 of a fragment
//	name            JOB/EPOCH/NUMBER, the job's digest in hex; NUMBER is that of the mini-batch, also of a fragment
//	fragment        INDEX/OF: the fragment of that index, counted from 0, of the OF of the mini-batch (only of a
//	                fragment)
//	shapes          {"rows":B,"dense":D,"keys":F,"values":N}
//	dense           JSON list of the dense features' names
//	keys            JSON list of the keys' names
//	num_embeddings  JSON list, one for each key; 0 if the key's ids are not bounded
//	list            JSON list, one for each key; false if every row has exactly one id
//	ids             int32 or int64 (only with keys)
//	lengths         ones (only with keys, and only if every length is 1 and kjt.lengths is left out)
//	sets            JSON list, one for each key: the set in which it is deduplicated, or 0 (only if there are sets)
//	unique          JSON list, one for each set: how many different rows it has (only if there are sets, and not of a
//	                fragment)
//	crc32c          of the tensors' bytes, 8 hex digits
//
// Strings escape only ", \ and characters below space (as \u00xx). There is nothing else in a frame, so one mini-batch
// has one frame.
//
// A fragment is not deduplicated: its tensors are those of a schema without sets. INDEX and OF are decimal numbers
// without needless zeros. OF is at least 2: the only fragment of a mini-batch is the mini-batch.
type Frame struct {
	Header []byte   // length and JSON, a multiple of 64 bytes
	Data   [][]byte // views, in order
}

// EncodeFrame returns the frame of a mini-batch or of a fragment, which it validates. The error wraps ErrShape.
func EncodeFrame(m *MiniBatch) (Frame, error) {
	if err := m.Validate(); err != nil {
		return Frame{}, fmt.Errorf("frame of mini-batch %v: %w", m.Name, err)
	}
	if err := m.checkFragment(); err != nil {
		return Frame{}, fmt.Errorf("frame of mini-batch %v: %w", m.Name, err)
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
	f.Header = appendHeader(nil, &frameSubject{m.Name, m.Fragment, m.Schema, m.Rows, m.Values(), m.Unique}, e, crc)
	if len(f.Header) > MaxFrameHeader+8 {
		return Frame{}, shapeError("frame of mini-batch %v: the header has %d bytes, at most %d", m.Name,
			len(f.Header)-8, MaxFrameHeader)
	}
	return f, nil
}

// checkFragment checks which fragment a frame is of, and that fragments are not deduplicated, and whole mini-batches
// are, if the schema has sets. The error wraps ErrShape.
func (m *MiniBatch) checkFragment() error {
	f := m.Fragment
	switch whole := f == (Fragment{}); {
	case whole && m.Unique == nil && m.Schema.Sets() > 0:
		return shapeError("it is not deduplicated yet")
	case whole:
		return nil
	case m.Unique != nil:
		return shapeError("fragment %v is deduplicated: deduplicate when its mini-batch is joined", f)
	case f.Of < 2 || f.Of > MaxRows:
		return shapeError("fragment %v: the mini-batch has %d fragments, want 2 to %d", f, f.Of, MaxRows)
	case f.Index < 0 || f.Index >= f.Of:
		return shapeError("fragment %v: its index is %d, want 0 to %d", f, f.Index, f.Of-1)
	}
	return nil
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

// frameSubject is what a frame's header says, besides where the tensors lie.
type frameSubject struct {
	name         Name
	fragment     Fragment
	schema       *Schema
	rows, values int
	unique       []int32 // nil: not deduplicated
}

// appendShapes appends the header's JSON up to the number of rows.
func appendShapes(b []byte, name Name, fragment Fragment, s *Schema) []byte {
	b = append(b, `{"__metadata__":{"format":"`...)
	b = append(b, frameFormat(s, fragment)...)
	b = append(b, `","name":"`...)
	b = name.appendTo(b)
	if fragment != (Fragment{}) {
		b = strconv.AppendInt(append(b, `","fragment":"`...), int64(fragment.Index), 10)
		b = strconv.AppendInt(append(b, '/'), int64(fragment.Of), 10)
	}
	return append(b, `","shapes":"{\"rows\":`...)
}

// appendCounts appends what follows the number of rows, up to the number of values.
func appendCounts(b []byte, s *Schema) []byte {
	b = strconv.AppendInt(append(b, `,\"dense\":`...), int64(len(s.Dense)), 10)
	b = strconv.AppendInt(append(b, `,\"keys\":`...), int64(len(s.Keys)), 10)
	return append(b, `,\"values\":`...)
}

// headerRoom returns bytes that are enough for the header of a schema whose names need no escapes.
func headerRoom(s *Schema, unique []int32) int {
	const (
		fixed, tensor = 512, 128
		quotes        = 5                    // \" before and behind a name, and a comma
		perKey        = quotes + 20 + 6 + 11 // and its numbers in num_embeddings, list and sets
	)
	n := fixed + tensor*maxTensors + 11*len(unique)
	for _, d := range s.Dense {
		n += len(d) + quotes
	}
	for i := range s.Keys {
		n += len(s.Keys[i].Name) + perKey
	}
	return n
}

// appendHeader appends a frame's length and JSON. It allocates at most once, unless names need many escapes.
func appendHeader(b []byte, f *frameSubject, e Extents, crc uint32) []byte {
	start, s := len(b), f.schema
	b = slices.Grow(b, headerRoom(s, f.unique))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = appendShapes(b, f.name, f.fragment, s)
	b = appendCounts(strconv.AppendInt(b, int64(f.rows), 10), s)
	b = append(strconv.AppendInt(b, int64(f.values), 10), '}')
	b = append(b, `","dense":"[`...)
	for i, d := range s.Dense {
		b = appendNested(comma(b, i), d)
	}
	b = append(b, `]","keys":"[`...)
	for i := range s.Keys {
		b = appendNested(comma(b, i), s.Keys[i].Name)
	}
	b = append(b, `]","num_embeddings":"[`...)
	for i := range s.Keys {
		b = strconv.AppendInt(comma(b, i), s.Keys[i].NumEmbeddings, 10)
	}
	b = append(b, `]","list":"[`...)
	for i := range s.Keys {
		b = strconv.AppendBool(comma(b, i), s.Keys[i].List)
	}
	b = append(b, `]"`...)
	if len(s.Keys) > 0 {
		b = append(append(append(b, `,"ids":"`...), s.IDs.String()...), '"')
		if s.Fixed() {
			b = append(b, `,"lengths":"ones"`...)
		}
	}
	if s.Sets() > 0 {
		b = append(b, `,"sets":"[`...)
		for i := range s.Keys {
			b = strconv.AppendInt(comma(b, i), int64(s.Keys[i].Set), 10)
		}
		b = append(b, `]"`...)
	}
	if f.unique != nil {
		b = append(b, `,"unique":"[`...)
		for i, n := range f.unique {
			b = strconv.AppendInt(comma(b, i), int64(n), 10)
		}
		b = append(b, `]"`...)
	}
	b = appendHex32(append(b, `,"crc32c":"`...), crc)
	b = append(b, `"}`...)
	for i := range e.Tensors {
		b = appendTensor(b, &e.Tensors[i])
	}
	b = append(b, '}')
	for (len(b)-start)%Align != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b[start:], uint64(len(b)-start-8))
	return b
}

// appendTensor appends the description of a tensor, after a comma.
func appendTensor(b []byte, t *Extent) []byte {
	b = append(append(append(b, `,"`...), t.Name...), `":{"dtype":"`...)
	b = append(append(b, t.DType.safetensors()...), `","shape":[`...)
	for i, dim := range t.Shape {
		b = strconv.AppendInt(comma(b, i), dim, 10)
	}
	b = strconv.AppendInt(append(b, `],"data_offsets":[`...), t.Offset, 10)
	b = strconv.AppendInt(append(b, ','), t.Offset+t.Bytes, 10)
	return append(b, `]}`...)
}

// appendHex32 appends a number as 8 hexadecimal digits.
func appendHex32(b []byte, n uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[n>>shift&15])
	}
	return b
}

// comma appends a comma before every element but the first.
func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendNested appends s as a JSON string that lies in a JSON text that is itself a JSON string: both are escaped. It
// does not use encoding/json, because frames must stay the same in every release of Go.
func appendNested(b []byte, s string) []byte {
	b = append(b, `\"`...)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			b = append(b, `\\\"`...)
		case c == '\\':
			b = append(b, `\\\\`...)
		case c < ' ':
			b = append(b, `\\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, `\"`...)
}
