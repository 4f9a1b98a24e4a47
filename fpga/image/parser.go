package image

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Image is a parsed image: the Spec, and the fields that the container adds to it.
type Image struct {
	Spec      Spec
	ID        ID
	Sections  []Section
	Signature *Signature // nil: unsigned

	bytes  []byte // the whole file; Signature covers bytes[:signed]
	signed int
}

// Section describes one entry of the table.
type Section struct {
	Kind   Kind
	Name   string
	Flags  Flags
	Offset int
	Size   int
	SHA256 [32]byte
}

// Interface returns the interface UUID that the image needs.
func (m *Image) Interface() uuid.UUID { return m.Spec.Interface }

// Bytes returns the file. It must not be written.
func (m *Image) Bytes() []byte { return m.bytes }

// Parse reads an image. It keeps b, which must not be written afterwards. It allocates in proportion to len(b) only.
func Parse(b []byte) (*Image, error) {
	h, n, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	m := &Image{bytes: b, Spec: Spec{Interface: h.iface, Time: h.time}}
	m.Spec.Platform = string(bytes.TrimRight(h.platform[:], "\x00"))
	sections := make([]section, 0, n)
	at := headerSize + entrySize*n
	for i := range n {
		s, off, err := parseEntry(b, i)
		if err != nil {
			return nil, err
		}
		if i > 0 && s.kind.orderInFile() <= sections[i-1].kind.orderInFile() {
			return nil, refuseSection(s, ErrLayout, "sections must be in the order of their kinds, one of a kind")
		}
		start := roundUpToAlign(at)
		switch {
		case off < uint64(start):
			return nil, refuseSection(s, ErrLayout, "overlaps what is before it")
		case off > uint64(start):
			return nil, refuseSection(s, ErrLayout, "leaves a gap before it")
		case start > len(b):
			return nil, refuseSection(s, ErrLayout, "starts behind the end")
		}
		size := binary.LittleEndian.Uint64(b[headerSize+entrySize*i+32:])
		if size > uint64(len(b)-start) {
			return nil, refuseSection(s, ErrLayout, "ends behind the end")
		}
		if !isAllZeros(b[at:start]) {
			return nil, refuseSection(s, ErrLayout, "padding before it is not zero")
		}
		at = start + int(size)
		s.data = b[start:at:at]
		sum := s.sectionDigest()
		if !bytes.Equal(sum[:], b[headerSize+entrySize*i+48:][:32]) {
			return nil, refuseSection(s, ErrCorrupt, "SHA-256 differs")
		}
		m.Sections = append(m.Sections, Section{Kind: s.kind, Name: trimPaddedName(s.name), Flags: s.flags, Offset: start,
			Size: int(size), SHA256: sum})
		if err := m.decodeSection(s, start); err != nil {
			return nil, err
		}
		sections = append(sections, *s)
	}
	if at != len(b) {
		return nil, &Error{Detail: fmt.Sprintf("%d bytes behind the last section", len(b)-at), Err: ErrLayout}
	}
	if m.findSection(KindModules) != nil && h.minor < MinorModules {
		return nil, &Error{Section: KindModules.tableName(), Detail: fmt.Sprintf("in an image of version %d.%d, want %d.%d",
			Major, h.minor, Major, MinorModules), Err: ErrLayout}
	}
	if m.findSection(KindParameters) != nil && h.minor < MinorParameters {
		return nil, &Error{Section: KindParameters.tableName(), Detail: fmt.Sprintf(
			"in an image of version %d.%d, want %d.%d",
			Major, h.minor, Major, MinorParameters), Err: ErrLayout}
	}
	m.ID = imageIdentity(h, sections)
	if !bytes.Equal(m.ID[:], b[offID:][:32]) {
		return nil, &Error{Detail: "image id differs from the sections'", Err: ErrCorrupt}
	}
	for _, k := range []Kind{KindUnits, KindPartition} {
		if m.findSection(k) == nil {
			return nil, &Error{Section: k.tableName(), Detail: "missing", Err: ErrContent}
		}
	}
	if err := m.Spec.checkSpec(); err != nil {
		return nil, err
	}
	return m, nil
}

// findSection finds a section by kind.
func (m *Image) findSection(k Kind) *Section {
	for i := range m.Sections {
		if m.Sections[i].Kind == k {
			return &m.Sections[i]
		}
	}
	return nil
}

// parseHeader checks the fixed header and returns it with the number of sections.
func parseHeader(b []byte) (*header, int, error) {
	fail := func(err error, format string, args ...any) (*header, int, error) {
		return nil, 0, &Error{Detail: fmt.Sprintf(format, args...), Err: err}
	}
	le := binary.LittleEndian
	if len(b) > MaxSize {
		return fail(ErrTooLarge, "%d bytes, at most %d", len(b), MaxSize)
	}
	if len(b) < headerSize || !bytes.Equal(b[:8], magic[:]) {
		return fail(ErrCorrupt, "does not begin like an image")
	}
	if v := le.Uint16(b[offMajor:]); v != Major {
		return fail(ErrVersion, "version %d, this reader knows %d", v, Major)
	}
	n := le.Uint32(b[offSections:])
	if n > MaxSections {
		return fail(ErrTooLarge, "%d sections, at most %d", n, MaxSections)
	}
	if le.Uint32(b[offHeader:]) != headerSize || headerSize+entrySize*int(n) > len(b) {
		return fail(ErrLayout, "header or table does not fit")
	}
	if got, want := headerCRC(b, int(n)), le.Uint32(b[offCRC:]); got != want {
		return fail(ErrCorrupt, "CRC32C %08x, the header says %08x", got, want)
	}
	if total := le.Uint64(b[offTotal:]); total != uint64(len(b)) {
		return fail(ErrLayout, "%d bytes, the header says %d", len(b), total)
	}
	if f := le.Uint32(b[offFlags:]); f != 0 {
		return fail(ErrUnknown, "flags %#x", f)
	}
	if !isAllZeros(b[offReserved:offCRC]) {
		return fail(ErrLayout, "reserved bytes are not zero")
	}
	h := &header{minor: le.Uint16(b[offMinor:]), time: le.Uint64(b[offTime:])}
	copy(h.iface[:], b[offInterface:])
	copy(h.platform[:], b[offPlatform:])
	if !isZeroPadded(h.platform[:]) || h.platform[0] == 0 {
		return fail(ErrLayout, "platform name is empty or not padded with NUL")
	}
	return h, int(n), nil
}

// parseEntry reads entry i of the table, without the section's bytes, and the offset it names.
func parseEntry(b []byte, i int) (*section, uint64, error) {
	le := binary.LittleEndian
	e := b[headerSize+entrySize*i:][:entrySize]
	s := &section{kind: Kind(le.Uint32(e)), flags: Flags(le.Uint16(e[4:])), codec: Codec(le.Uint16(e[6:]))}
	copy(s.name[:], e[8:])
	known := s.kind.tableName() != ""
	switch {
	case s.flags&^Required != 0:
		return nil, 0, refuseSection(s, ErrUnknown, fmt.Sprintf("flags %#x", s.flags))
	case s.codec != CodecNone:
		return nil, 0, refuseSection(s, ErrUnknown, fmt.Sprintf("codec %d", s.codec))
	case !isZeroPadded(s.name[:]) || !utf8.Valid(s.name[:]):
		return nil, 0, refuseSection(s, ErrLayout, "name is not padded with NUL")
	case known && trimPaddedName(s.name) != s.kind.tableName():
		return nil, 0, refuseSection(s, ErrLayout, "name differs from its kind's")
	case known && (s.flags&Required != 0) != s.kind.isRequired():
		return nil, 0, refuseSection(s, ErrLayout, "required flag differs from its kind's")
	case !known && s.flags&Required != 0:
		return nil, 0, refuseSection(s, ErrUnknown, "required, and unknown to this reader")
	case !isAllZeros(e[40:48]):
		return nil, 0, refuseSection(s, ErrLayout, "reserved bytes are not zero")
	}
	return s, le.Uint64(e[24:]), nil
}

// decodeSection reads a section's content into the Spec.
func (m *Image) decodeSection(s *section, start int) error {
	var dst any
	p := &m.Spec
	switch s.kind {
	case KindUnits:
		dst = &p.Units
	case KindIPLayout:
		dst = &p.Compute
	case KindMemTopology:
		dst = &p.Memories
	case KindConnectivity:
		dst = &p.Connections
	case KindClocks:
		dst = &p.Clocks
	case KindPartition:
		dst = &p.Partition
	case KindKernels:
		dst = &p.Kernels
	case KindResources:
		dst = &p.Resources
	case KindParameters:
		p.Parameters = new(Parameters) // so that the text null is refused: its canonical form is another
		dst = p.Parameters
	case KindSelfTest:
		dst = &p.SelfTest
	case KindBuild:
		dst = &p.Build
	case KindUser:
		p.User = s.data
		return nil
	case KindModules:
		modules, err := parseModules(s)
		p.Modules = modules
		return err
	case KindSignature:
		sig, err := parseSignature(s.data)
		if err != nil {
			return err
		}
		m.Signature, m.signed = sig, start
		return nil
	default:
		return nil // unknown and not required: kept in the table, skipped
	}
	if len(s.data) > MaxJSON {
		return refuseSection(s, ErrTooLarge, fmt.Sprintf("%d bytes, at most %d", len(s.data), MaxJSON))
	}
	if err := json.Unmarshal(s.data, dst); err != nil {
		return refuseSection(s, ErrContent, err.Error())
	}
	// One text a value: unknown or repeated keys, white space and other spellings do not survive re-encoding.
	again, err := json.Marshal(dst)
	if err != nil || !bytes.Equal(again, s.data) {
		return refuseSection(s, ErrLayout, "is not in canonical form")
	}
	return nil
}

func refuseSection(s *section, err error, detail string) error {
	name := s.kind.tableName()
	if name == "" {
		name = fmt.Sprintf("%d %q", uint32(s.kind), trimPaddedName(s.name))
	}
	return &Error{Section: name, Detail: detail, Err: err}
}

func trimPaddedName(b [nameSize]byte) string { return string(bytes.TrimRight(b[:], "\x00")) }

// isZeroPadded reports whether b is text followed by nothing but NULs.
func isZeroPadded(b []byte) bool {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return isAllZeros(b[i:])
	}
	return true
}

func isAllZeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
