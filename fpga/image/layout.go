package image

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/google/uuid"
)

// Limits of the container. A foreign file is held against them before anything is read from it.
const (
	// MaxSize bounds a whole image. A partial bitstream of the largest devices is about 50 MiB.
	MaxSize = 128 << 20
	// MaxSections bounds the section table.
	MaxSections = 64
	// MaxJSON bounds a structured section, so that decoding it cannot ask for much memory.
	MaxJSON = 1 << 20

	// Major and Minor are the format version that Build writes for an image without modules and without parameters.
	// Parse takes any minor version of this major one.
	Major = 1
	Minor = 0
	// MinorModules is the minor version of an image with modules.
	MinorModules = 1
	// MinorParameters is the minor version of an image with parameters.
	MinorParameters = 2

	align        = 64
	headerSize   = 200
	entrySize    = 80
	platformSize = 64
	nameSize     = 16
)

// Offsets of the header's fields.
const (
	offMagic     = 0   // [8]
	offHeader    = 8   // u32: headerSize
	offMajor     = 12  // u16
	offMinor     = 14  // u16
	offTotal     = 16  // u64
	offTime      = 24  // u64: seconds since 1970, SOURCE_DATE_EPOCH
	offFlags     = 32  // u32: 0
	offSections  = 36  // u32
	offID        = 40  // [32]
	offInterface = 72  // [16]
	offPlatform  = 88  // [64], NUL padded
	offReserved  = 152 // [44], 0
	offCRC       = 196 // u32: CRC32C of header (this field as 0) and table
)

// magic begins with a byte outside ASCII and holds a line end, so that a file mangled as text is recognised.
var magic = [8]byte{0x89, 'M', 'I', 'M', 'G', '\r', '\n', 0x1a}

// Kind names a section. The numbers are part of the format. Sections lie in a file in the order of their numbers, save
// PARAMETERS and MODULES, which lie before and behind SELFTEST: the signature covers what is before it.
type Kind uint32

// The sections. The numbers are part of the format.
const (
	KindUnits        Kind = 1  // the "bitstream": units with versions, parameters and the digest of their RTL source
	KindIPLayout     Kind = 2  // compute units: name, unit, base, size, control protocol, interrupt
	KindMemTopology  Kind = 3  // the memories the kernels see
	KindConnectivity Kind = 4  // which argument of which compute unit reaches which memory
	KindClocks       Kind = 5  // requested, granted and screened frequencies
	KindPartition    Kind = 6  // the region, its budget, the interfaces it exports
	KindKernels      Kind = 7  // arguments, lanes, initiation interval, latency
	KindResources    Kind = 8  // what synthesis reported, with tool versions
	KindSelfTest     Kind = 9  // known-answer vectors, run by the drive before it activates the image
	KindBuild        Kind = 10 // where the image came from; not part of the id
	KindUser         Kind = 11 // free bytes; not part of the id
	KindSignature    Kind = 12 // Ed25519 over everything before it; not part of the id
	KindModules      Kind = 13 // WebAssembly modules that programs may name; behind SELFTEST
	KindParameters   Kind = 14 // clock, elements, lanes, initiation intervals, latencies with sources; before SELFTEST
)

// tableName is the section's name as it stands in the table.
func (k Kind) tableName() string {
	switch k {
	case KindUnits:
		return "UNITS"
	case KindIPLayout:
		return "IP_LAYOUT"
	case KindMemTopology:
		return "MEM_TOPOLOGY"
	case KindConnectivity:
		return "CONNECTIVITY"
	case KindClocks:
		return "CLOCKS"
	case KindPartition:
		return "PARTITION"
	case KindKernels:
		return "KERNELS"
	case KindResources:
		return "RESOURCES"
	case KindSelfTest:
		return "SELFTEST"
	case KindBuild:
		return "BUILD"
	case KindUser:
		return "USER"
	case KindSignature:
		return "SIGNATURE"
	case KindModules:
		return "MODULES"
	case KindParameters:
		return "PARAMETERS"
	}
	return ""
}

func (k Kind) String() string {
	if n := k.tableName(); n != "" {
		return n
	}
	return fmt.Sprintf("section kind %d", uint32(k))
}

// orderInFile returns the place of the section among the others of a file.
func (k Kind) orderInFile() uint64 {
	switch k {
	case KindParameters:
		return 2*uint64(KindSelfTest) - 1
	case KindModules:
		return 2*uint64(KindSelfTest) + 1
	}
	return 2 * uint64(k)
}

// isPartOfID reports whether the section is part of the image's identity.
func (k Kind) isPartOfID() bool { return k != KindBuild && k != KindUser && k != KindSignature }

// isRequired reports whether Build marks the section as one that a reader must understand.
func (k Kind) isRequired() bool {
	switch k {
	case KindUnits, KindPartition, KindKernels, KindSelfTest, KindSignature, KindModules, KindParameters:
		return true
	}
	return false
}

// Flags of a section.
type Flags uint16

// Required marks a section that a reader must understand. A reader keeps and skips an unknown section without the mark.
const Required Flags = 1

// Codec says how a section's bytes are packed. Only CodecNone exists: images compress badly and are small.
type Codec uint16

// CodecNone says that the bytes lie in the file as they are.
const CodecNone Codec = 0

// ID identifies an image by what it does.
type ID [32]byte

// UUID shows the id in 16 bytes: a UUIDv8 made of its first bits.
func (id ID) UUID() uuid.UUID {
	var u uuid.UUID
	copy(u[:], id[:])
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return u
}

// PUID is the id's first 8 bytes as a big-endian number: the program unique identifier of the Computational Programs
// command set.
func (id ID) PUID() uint64 { return binary.BigEndian.Uint64(id[:]) }

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Why Parse refuses bytes.
var (
	ErrCorrupt  = errors.New("damaged image")                               // magic, CRC, digest or id does not match
	ErrVersion  = errors.New("image of another format version")             // another major version
	ErrUnknown  = errors.New("image needs something this reader lacks")     // unknown required section, codec or flag
	ErrLayout   = errors.New("image is not laid out canonically")           // order, overlap, gap, bounds, padding
	ErrContent  = errors.New("image section does not hold what it must")    // JSON, limits, missing section
	ErrTooLarge = errors.New("image is larger than the format allows")      // MaxSize, MaxSections, MaxJSON
	ErrUnsigned = errors.New("image carries no signature of a trusted key") // Verify
)

// Error names the section that was refused, and the cause.
type Error struct {
	Section string // empty: the header or the table
	Detail  string
	Err     error // one of the sentinels
}

func (e *Error) Error() string {
	where := "header"
	if e.Section != "" {
		where = "section " + e.Section
	}
	return fmt.Sprintf("image: %s: %v: %s", where, e.Err, e.Detail)
}

func (e *Error) Unwrap() error { return e.Err }

// section is one entry of the table with its bytes.
type section struct {
	kind  Kind
	flags Flags
	codec Codec
	name  [nameSize]byte
	data  []byte
}

// sectionDigest returns the section's digest for the table. The signature's entry holds zeros, because the table is
// part of what is signed.
func (s *section) sectionDigest() [32]byte {
	if s.kind == KindSignature {
		return [32]byte{}
	}
	return sha256.Sum256(s.data)
}

// header is the fixed header without what follows from the sections.
type header struct {
	minor    uint16
	time     uint64
	iface    uuid.UUID
	platform [platformSize]byte
}

// imageIdentity computes the image id.
func imageIdentity(h *header, sections []section) ID {
	d := sha256.New()
	d.Write([]byte("millrace image id 1\n"))
	d.Write(h.iface[:])
	d.Write(h.platform[:])
	var b [20]byte
	for i := range sections {
		s := &sections[i]
		if !s.kind.isPartOfID() {
			continue
		}
		binary.LittleEndian.PutUint32(b[0:], uint32(s.kind))
		binary.LittleEndian.PutUint16(b[4:], uint16(s.flags))
		binary.LittleEndian.PutUint16(b[6:], uint16(s.codec))
		binary.LittleEndian.PutUint64(b[8:], uint64(len(s.data)))
		d.Write(b[:16])
		sum := s.sectionDigest()
		d.Write(sum[:])
	}
	return ID(d.Sum(nil))
}

// encodeImage lays sections, already in order, out behind a header.
func encodeImage(h *header, sections []section) []byte {
	at := roundUpToAlign(headerSize + entrySize*len(sections))
	total := at
	for i := range sections {
		total = roundUpToAlign(total) + len(sections[i].data)
	}
	b := make([]byte, total)
	le := binary.LittleEndian
	copy(b[offMagic:], magic[:])
	le.PutUint32(b[offHeader:], headerSize)
	le.PutUint16(b[offMajor:], Major)
	le.PutUint16(b[offMinor:], h.minor)
	le.PutUint64(b[offTotal:], uint64(total))
	le.PutUint64(b[offTime:], h.time)
	le.PutUint32(b[offSections:], uint32(len(sections)))
	id := imageIdentity(h, sections)
	copy(b[offID:], id[:])
	copy(b[offInterface:], h.iface[:])
	copy(b[offPlatform:], h.platform[:])
	for i := range sections {
		s := &sections[i]
		e := b[headerSize+entrySize*i:]
		at = roundUpToAlign(at)
		le.PutUint32(e[0:], uint32(s.kind))
		le.PutUint16(e[4:], uint16(s.flags))
		le.PutUint16(e[6:], uint16(s.codec))
		copy(e[8:], s.name[:])
		le.PutUint64(e[24:], uint64(at))
		le.PutUint64(e[32:], uint64(len(s.data)))
		// e[40:48] is reserved for the unpacked size of a packed section.
		sum := s.sectionDigest()
		copy(e[48:], sum[:])
		copy(b[at:], s.data)
		at += len(s.data)
	}
	le.PutUint32(b[offCRC:], headerCRC(b, len(sections)))
	return b
}

// headerCRC is the CRC32C of header and table, the CRC field taken as zero.
func headerCRC(b []byte, sections int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	c := crc32.Update(0, table, b[:offCRC])
	c = crc32.Update(c, table, make([]byte, 4))
	return crc32.Update(c, table, b[headerSize:headerSize+entrySize*sections])
}

func roundUpToAlign(n int) int { return (n + align - 1) &^ (align - 1) }
