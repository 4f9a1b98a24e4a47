package wire

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// Sizes of the fixed parts, in bytes.
const (
	headerSize      = 32
	sectionSize     = 16
	columnSize      = 16
	sinkSize        = 16
	opSize          = 8
	tableSize       = 8
	partSize        = 16
	pickSize        = 16
	textSize        = 8
	sourceSize      = 8
	outputSize      = 16
	denseSize       = 8
	lookupTableSize = 80
	SliceHeader     = 128 // a marshalled slice is SliceHeader + SliceTask * tasks bytes
	SliceTask       = 128
	ResultHeader    = 128 // a marshalled result is ResultHeader + ResultTask * tasks bytes and its message
	ResultTask      = 64
	cursorSize      = 32
	crcOffset       = 24
	lengthOffset    = 16
	flagRequired    = 1
	cursorUnpacked  = 1
	cursorDict      = 2
	cursorChecked   = 4
	cursorValueAt   = 3 // its lowest bit

	chunkUnsigned         = 1
	chunkRowsUncounted    = 2
	chunkAlwaysCompressed = 4
	chunkAbsent           = 8
	chunkAnnotated        = 16
	chunkFlags            = chunkUnsigned | chunkRowsUncounted | chunkAlwaysCompressed | chunkAbsent | chunkAnnotated

	columnAbsent    = 1
	columnFitsInt64 = 2
	columnReading   = 4 // the lowest of two bits
	columnFlags     = columnAbsent | columnFitsInt64 | 3*columnReading

	sliceTablesChecked = 1
)

// Sections of a program, in the order in which they are written. A section begins with id u16, flags u16 (bit 0:
// required), 4 reserved, length u64; its payload is followed by zeros up to a multiple of 8 bytes.
//
//	source   source u8, label u8, malformed u8, 5 reserved
//	tables   count u32, 4 reserved; then tables
//	columns  count u32, 4 reserved; then columns
//	output   label u8, ids u8, fixed u8, 1 reserved, dense u32, keys u32, 4 reserved
//	maps     parts u32, weights u8, 3 reserved; then parts in order of their columns. Only if there are maps
//	dense    type u8, 7 reserved. Only if the elements of dense are not float32
//	graphs   count u32, weights u8 (0 if there are maps), 3 reserved; then graphs in order of their columns. Only if
//	         there are graphs
//	texts    count u32, 4 reserved; then texts: length u32, 4 reserved, UTF-8, padded. Each text is written once, in
//	         order of first use. Only if keys of maps are text
//	lookups  count u32, 4 reserved; then lookup tables. Only if there are some
//
//	table    kind u8, 3 reserved, count u32; numbers of 4 or 8 bytes, padded, or of texts (kind bytes) their lengths u32,
//	         padded, and the texts behind each other, padded. Each list is written once, however many operators use it,
//	         in order of first use
//	column   kind u8, list u8, field u16, length of name u32, sinks u32, flags u8 (bit 0: absent, bit 1:
//	         fits int64, bits 2 and 3: reading), 3 reserved; name, padded; then sinks
//	sink     to u8, refuses u8, 2 reserved, index u32, operators u32, 4 reserved; then operators
//	part     column u32, part u8, 3 reserved, keys u32, 4 reserved; then for each of the column's sinks key i64 (of
//	         a map whose keys are text the number of the text), scored u8, 7 reserved
//	graph    first column u32, columns u32, steps u32, sinks u32; then steps; then for each sink value u32, scored u8,
//	         3 reserved, and the sink
//	step     inputs u32, operators u32, combined u8, 7 reserved; inputs u32 each, padded; if combined the operator
//	         that takes all inputs; then operators
//	lookup table  SHA-256, offset u64, entries u64, least i64, multiplier u64, keys u32, probes u32, hashed u8,
//	         7 reserved
//	operator unit u16, version u16, length of parameters u32; parameters, padded
//
// The parameters are those that the operator's Fields visits, in that order.
const (
	sectionSource  = 1
	sectionTables  = 2
	sectionColumns = 3
	sectionOutput  = 4
	sectionMaps    = 5
	sectionDense   = 6
	sectionGraphs  = 7
	sectionTexts   = 8
	sectionLookups = 9
)

// magic begins a program: 8 bytes. Behind it: major u16, minor u16, sections u32, length u64, CRC32C u32, 4 reserved.
const magic = "MILLPROG"

// Magics of a slice and a result: 4 bytes. Behind them: major u16, minor u16, length u32, tasks u32.
const (
	sliceMagic  = "MSLC"
	resultMagic = "MRES"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC32C of all of a program but the field that holds it.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:crcOffset], castagnoli), castagnoli, b[crcOffset+4:])
}

var le = binary.LittleEndian

// padTo8Bytes appends zeros until what was appended since from is a multiple of 8 bytes.
func padTo8Bytes(b []byte, from int) []byte {
	for (len(b)-from)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

func boolBit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// reader reads little-endian fields from the front of bytes. After its first failure every read returns zeros, so that
// callers check once after a structure.
type reader struct {
	what string // what is read, for errors
	b    []byte
	at   int // offset of b in the whole, for errors
	err  error
}

func (r *reader) failCorrupt(format string, args ...any) {
	if r.err == nil {
		r.err = corruptError(r.what, format, args...)
	}
}

// takeBytes returns the next n bytes, or nil when fewer are left.
func (r *reader) takeBytes(n uint64, of string) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.failCorrupt("%s at byte %d wants %d bytes, %d are left", of, r.at, n, len(r.b))
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	r.at += int(n)
	return b
}

// takePadded returns the next n bytes as takeBytes does, and skips the zeros that pad them to a multiple of 8 bytes.
func (r *reader) takePadded(n uint64, of string) []byte {
	b := r.takeBytes(n, of)
	r.checkZeros(r.takeBytes((8-n%8)%8, of), of)
	return b
}

// checkZeros checks that reserved bytes are zero.
func (r *reader) checkZeros(b []byte, of string) {
	for _, c := range b {
		if c != 0 {
			r.failCorrupt("%s has reserved bytes that are not zero", of)
			return
		}
	}
}

// readBool reads a bool.
func (r *reader) readBool(c byte, of string) bool {
	if c > 1 {
		r.failCorrupt("%s is %d, want 0 or 1", of, c)
	}
	return c == 1
}

// checkCount returns n, a number of items of at least size bytes each. It refuses a number above limit, and a number of
// items for which there are not enough bytes.
func (r *reader) checkCount(n, limit, size uint64, of string) int {
	if r.err != nil {
		return 0
	}
	if n > limit {
		r.failCorrupt("%d %s, want at most %d", n, of, limit)
		return 0
	}
	if n > uint64(len(r.b))/size {
		r.failCorrupt("%d %s do not fit into the %d bytes left", n, of, len(r.b))
		return 0
	}
	return int(n)
}

func appendFloat64(b []byte, x float64) []byte { return le.AppendUint64(b, math.Float64bits(x)) }
func appendFloat32(b []byte, x float32) []byte { return le.AppendUint32(b, math.Float32bits(x)) }
func float64At(b []byte) float64               { return math.Float64frombits(le.Uint64(b)) }
func float32At(b []byte) float32               { return math.Float32frombits(le.Uint32(b)) }
