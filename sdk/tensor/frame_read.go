package tensor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/crc32c"
)

// frameHeader is a header as encoding/json reads it. The reader writes the header again to check its canonical form.
type frameHeader struct {
	Metadata struct {
		Format        string `json:"format"`
		Name          string `json:"name"`
		Fragment      string `json:"fragment"`
		Shapes        string `json:"shapes"`
		Dense         string `json:"dense"`
		Keys          string `json:"keys"`
		NumEmbeddings string `json:"num_embeddings"`
		List          string `json:"list"`
		IDs           string `json:"ids"`
		Lengths       string `json:"lengths"`
		Sets          string `json:"sets"`
		Unique        string `json:"unique"`
		CRC32C        string `json:"crc32c"`
	} `json:"__metadata__"`
	Values  *frameTensor `json:"kjt.values"`
	Dense   *frameTensor `json:"dense"`
	Lengths *frameTensor `json:"kjt.lengths"`
	Inverse *frameTensor `json:"kjt.inverse"`
	Label   *frameTensor `json:"label"`
	Weights *frameTensor `json:"kjt.weights"`
}

// frameTensor is one tensor of a header.
type frameTensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// ReadFrame reads the frame of a mini-batch or of a fragment. The tensors are views of b if its memory is aligned to
// their elements, and copies otherwise; b must not change while the mini-batch is used. Frames are foreign bytes:
// ReadFrame checks every length, offset, type and shape, the CRC32C, the rules of the keyed jagged tensor, and that the
// header equals the header that EncodeFrame makes. The length of b bounds what is allocated. The error wraps ErrFrame.
func ReadFrame(b []byte) (*MiniBatch, error) { return readSummed(b, nil) }

// ReadFrameOf reads a frame as ReadFrame does, for a caller that knows the name and the schema of the mini-batch, and
// which fragment of it the frame is of. crc is the CRC32C of the bytes after the header; the caller computes it while
// it reads the frame, when the bytes are still in the processor's cache. A mini-batch and a fragment have exactly one
// frame. So ReadFrameOf compares the header with the expected one, and parses it only if the two differ, to say what is
// wrong, or if the mini-batch is deduplicated. The schema must be valid. The error wraps ErrFrame.
func ReadFrameOf(b []byte, crc uint32, name Name, fragment Fragment, s *Schema) (*MiniBatch, error) {
	if m := readExpected(b, crc, name, fragment, s); m != nil {
		return m, nil
	}
	m, err := readSummed(b, &crc)
	switch {
	case err != nil:
		return nil, err
	case m.Name != name:
		return nil, fmt.Errorf("%w: it is mini-batch %v, not %v", ErrFrame, m.Name, name)
	case m.Fragment != fragment:
		return nil, fmt.Errorf("%w: mini-batch %v: it is fragment %v, not %v", ErrFrame, m.Name, m.Fragment, fragment)
	case !m.Schema.Equal(s):
		return nil, fmt.Errorf("%w: mini-batch %v has another schema", ErrFrame, m.Name)
	}
	return m, nil
}

// readExpected returns the mini-batch if the frame is exactly the expected one, and nil otherwise.
func readExpected(b []byte, crc uint32, name Name, fragment Fragment, s *Schema) *MiniBatch {
	deduplicated := s.Sets() > 0 && fragment == (Fragment{}) // only the parsed header says how many rows are unique
	if len(b) < 8 || deduplicated {
		return nil
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxFrameHeader || n > uint64(len(b)-8) {
		return nil
	}
	head := b[:8+n]
	rest, ok := bytes.CutPrefix(head[8:], appendShapes(nil, name, fragment, s))
	if !ok {
		return nil
	}
	rows, rest, ok := cutNumber(rest, MaxRows)
	if !ok {
		return nil
	}
	rest, ok = bytes.CutPrefix(rest, appendCounts(nil, s))
	if !ok {
		return nil
	}
	values, _, ok := cutNumber(rest, MaxValues)
	if !ok {
		return nil
	}
	e, err := Packed(s, int(rows), int(values))
	if err != nil || e.Bytes != int64(len(b)-len(head)) {
		return nil
	}
	subject := frameSubject{name, fragment, s, int(rows), int(values), nil}
	if want := appendHeader(make([]byte, 0, len(head)), &subject, e, crc); !bytes.Equal(head, want) {
		return nil
	}
	m, err := FromMemory(s, int(rows), int(values), b[len(head):], e, nil)
	if err != nil {
		return nil
	}
	m.Name, m.Fragment = name, fragment
	if m.checkFragment() != nil || m.validateTensors() != nil {
		return nil
	}
	return m
}

// cutNumber reads the digits of a number up to limit, and returns the bytes after them.
func cutNumber(b []byte, limit int64) (n int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		if n = 10*n + int64(b[i]-'0'); n > limit {
			return 0, nil, false
		}
	}
	return n, b[i:], i > 0
}

// readSummed reads a frame. sum is the CRC32C of its data, or nil if it is to be computed.
func readSummed(b []byte, sum *uint32) (*MiniBatch, error) {
	m, err := readFrame(b, sum)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return m, nil
}

// readFrame reads a frame as readSummed does. Its errors do not wrap ErrFrame.
func readFrame(b []byte, sum *uint32) (*MiniBatch, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("%d bytes, less than a header's length", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	switch {
	case n > MaxFrameHeader:
		return nil, fmt.Errorf("a header of %d bytes, at most %d", n, MaxFrameHeader)
	case n > uint64(len(b)-8):
		return nil, fmt.Errorf("a header of %d bytes in %d bytes", n, len(b)-8)
	case (n+8)%Align != 0:
		return nil, fmt.Errorf("data starts at %d, not at a multiple of %d", n+8, Align)
	}
	head, data := b[:8+n], b[8+n:]
	var h frameHeader
	if err := strictJSON(head[8:], &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	formats := []string{FrameFormat, FrameFormat2, FrameFormat3, FrameFormat4}
	if f := h.Metadata.Format; !slices.Contains(formats, f) {
		return nil, fmt.Errorf("format %.40q, this build reads %q", f, formats)
	}
	name, err := ParseName(h.Metadata.Name)
	if err != nil {
		return nil, err
	}
	fragment, err := h.fragment()
	if err != nil {
		return nil, err
	}
	s, rows, values, err := h.schema()
	if err != nil {
		return nil, err
	}
	if want := frameFormat(s, fragment); h.Metadata.Format != want {
		return nil, fmt.Errorf("format %q, want %q for these tensors", h.Metadata.Format, want)
	}
	var unique []int32
	if fragment == (Fragment{}) {
		if unique, err = h.unique(s); err != nil {
			return nil, err
		}
	}
	e, err := layout(s, rows, values, unique, 1)
	if err != nil {
		return nil, err
	}
	if err := h.checkTensors(e); err != nil {
		return nil, err
	}
	if int64(len(data)) != e.Bytes {
		return nil, fmt.Errorf("%d bytes of data, the header says %d", len(data), e.Bytes)
	}
	var crc uint32
	if sum != nil {
		crc = *sum
	} else {
		crc = crc32c.Checksum(data)
	}
	if want := fmt.Sprintf("%08x", crc); h.Metadata.CRC32C != want {
		return nil, fmt.Errorf("CRC32C %s, the header says %.20q: the data was changed", want, h.Metadata.CRC32C)
	}
	if !bytes.Equal(head, appendHeader(nil, &frameSubject{name, fragment, s, rows, values, unique}, e, crc)) {
		return nil, fmt.Errorf("the header is not in canonical form")
	}
	m, err := fromMemory(s, rows, values, unique, data, e, nil)
	if err != nil {
		return nil, err
	}
	m.Name, m.Fragment = name, fragment
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, m.checkFragment()
}

// fragment reads which fragment of the mini-batch the frame is of. checkFragment checks it.
func (h *frameHeader) fragment() (f Fragment, err error) {
	text := h.Metadata.Fragment
	if text == "" {
		return f, nil
	}
	index, of, ok := strings.Cut(text, "/")
	if f.Index, err = strconv.Atoi(index); ok && err == nil {
		f.Of, err = strconv.Atoi(of)
	}
	if !ok || err != nil {
		return f, fmt.Errorf("fragment %.60q, want INDEX/OF, two numbers", text)
	}
	return f, nil
}

// schema makes the schema from the metadata and from the tensors that the header lists.
func (h *frameHeader) schema() (s *Schema, rows, values int, err error) {
	var shapes struct{ Rows, Dense, Keys, Values int64 }
	if err := strictJSON([]byte(h.Metadata.Shapes), &shapes); err != nil {
		return nil, 0, 0, fmt.Errorf("shapes: %w", err)
	}
	s = &Schema{Label: h.Label != nil, Weights: h.Weights != nil}
	if h.Dense != nil && h.Dense.DType == BFloat16.safetensors() {
		s.DenseType = BFloat16
	}
	var keys []string
	var embeddings []int64
	var list []bool
	for _, f := range []struct {
		name, text string
		into       any
	}{
		{"dense", h.Metadata.Dense, &s.Dense},
		{"keys", h.Metadata.Keys, &keys},
		{"num_embeddings", h.Metadata.NumEmbeddings, &embeddings},
		{"list", h.Metadata.List, &list},
	} {
		if err := strictJSON([]byte(f.text), f.into); err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if len(embeddings) != len(keys) || len(list) != len(keys) {
		return nil, 0, 0, fmt.Errorf("%d keys, %d num_embeddings, %d list", len(keys), len(embeddings), len(list))
	}
	if shapes.Dense != int64(len(s.Dense)) || shapes.Keys != int64(len(keys)) {
		return nil, 0, 0, fmt.Errorf("%d dense features and %d keys, shapes says %d and %d", len(s.Dense), len(keys),
			shapes.Dense, shapes.Keys)
	}
	if len(keys) > 0 {
		s.Keys = make([]Key, len(keys))
		for i := range keys {
			s.Keys[i] = Key{Name: keys[i], NumEmbeddings: embeddings[i], List: list[i]}
		}
		switch h.Metadata.IDs {
		case Int32.String():
			s.IDs = Int32
		case Int64.String():
			s.IDs = Int64
		default:
			return nil, 0, 0, fmt.Errorf("ids are %.20q, want int32 or int64", h.Metadata.IDs)
		}
	}
	if h.Metadata.Sets != "" {
		var sets []int
		if err := strictJSON([]byte(h.Metadata.Sets), &sets); err != nil {
			return nil, 0, 0, fmt.Errorf("sets: %w", err)
		}
		if len(sets) != len(keys) {
			return nil, 0, 0, fmt.Errorf("%d keys, %d sets", len(keys), len(sets))
		}
		for i, set := range sets {
			s.Keys[i].Set = set
		}
	}
	if len(s.Dense) == 0 {
		s.Dense = nil
	}
	if err := s.Validate(); err != nil {
		return nil, 0, 0, err
	}
	if shapes.Rows < 0 || shapes.Rows > MaxRows || shapes.Values < 0 || shapes.Values > MaxValues {
		return nil, 0, 0, fmt.Errorf("%d rows and %d values", shapes.Rows, shapes.Values)
	}
	return s, int(shapes.Rows), int(shapes.Values), nil
}

// unique returns how many different rows each set of keys has; nil if there are no sets.
func (h *frameHeader) unique(s *Schema) ([]int32, error) {
	if s.Sets() == 0 {
		return nil, nil
	}
	var unique []int32
	if err := strictJSON([]byte(h.Metadata.Unique), &unique); err != nil {
		return nil, fmt.Errorf("unique: %w", err)
	}
	if unique == nil {
		return nil, fmt.Errorf("unique is null")
	}
	return unique, nil
}

// checkTensors refuses a header whose tensors are not those of the shapes.
func (h *frameHeader) checkTensors(e Extents) error {
	for _, f := range []struct {
		name string
		have *frameTensor
	}{
		{TensorValues, h.Values}, {TensorDense, h.Dense}, {TensorLengths, h.Lengths}, {TensorInverse, h.Inverse},
		{TensorLabel, h.Label}, {TensorWeights, h.Weights},
	} {
		want, ok := e.Find(f.name)
		have := f.have
		switch {
		case !ok && have == nil:
			continue
		case !ok:
			return fmt.Errorf("tensor %s should not be there", f.name)
		case have == nil:
			return fmt.Errorf("tensor %s is missing", f.name)
		case have.DType != want.DType.safetensors():
			return fmt.Errorf("tensor %s: dtype %.20q, want %s", f.name, have.DType, want.DType.safetensors())
		case !slices.Equal(have.Shape, want.Shape):
			return fmt.Errorf("tensor %s: shape %v, want %v", f.name, have.Shape, want.Shape)
		case have.Offsets[0] > want.Offset:
			return fmt.Errorf("tensor %s: a gap before it: it starts at %d, want %d", f.name, have.Offsets[0],
				want.Offset)
		case have.Offsets[0] < want.Offset:
			return fmt.Errorf("tensor %s: it overlaps the one before: it starts at %d, want %d", f.name,
				have.Offsets[0], want.Offset)
		case have.Offsets[1] != want.Offset+want.Bytes:
			return fmt.Errorf("tensor %s: it ends at %d, want %d", f.name, have.Offsets[1], want.Offset+want.Bytes)
		}
	}
	return nil
}

// strictJSON decodes one value and refuses unknown fields.
func strictJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
