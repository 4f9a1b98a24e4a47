package volume

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits for foreign archives.
const (
	// MaxName is the longest member name in bytes.
	MaxName = 4096
	// MaxMembers is the most members of a volume.
	MaxMembers = 1 << 20
	// maxExtension bounds a pax header or GNU long name.
	maxExtension = 1 << 20

	sector = 512 // tar's block
)

// Why an archive or a member is refused.
var (
	ErrNotTar  = errors.New("drive holds no tar archive")
	ErrNoFlash = errors.New("drive has no flash, so it holds no files: name the files or the drive that they lie on")
	ErrCorrupt = errors.New("tar archive is damaged")
	ErrSparse  = errors.New("member is sparse, so its bytes are not contiguous: archive it again without tar's " +
		"--sparse (-S), or put it with millrace drive put")
)

// Offsets in a header block (POSIX.1-1988 ustar).
const (
	offName   = 0 // [100]
	offMode   = 100
	offUID    = 108
	offGID    = 116
	offSize   = 124 // [12]
	offTime   = 136 // [12]
	offSum    = 148 // [8]
	offType   = 156
	offMagic  = 257 // [8]
	offPrefix = 345 // [155]
	offMore   = 482 // GNU sparse: further header blocks follow
)

// Types of member.
const (
	typeRegular    = '0'
	typeOld        = 0
	typeContiguous = '7'
	typePax        = 'x'
	typePaxGlobal  = 'g'
	typeLongName   = 'L'
	typeLongLink   = 'K'
	typeSparse     = 'S'
)

// header is the content of a header block.
type header struct {
	name string
	size int64
	time time.Time
	kind byte
	more bool // GNU sparse with further header blocks
}

// parseHeader reads one header block that is not all zeros.
func parseHeader(b *[sector]byte) (*header, error) {
	// The checksum counts itself as spaces. Some old writers summed signed bytes.
	var unsigned, signed int64
	for i, c := range b {
		if i >= offSum && i < offSum+8 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	sum, err := fieldNumber(b[offSum : offSum+8])
	if err != nil || sum != unsigned && sum != signed {
		return nil, fmt.Errorf("header checksum is %d, the header says %q", unsigned, b[offSum:offSum+8])
	}
	h := &header{kind: b[offType]}
	if h.size, err = fieldNumber(b[offSize : offSize+12]); err != nil || h.size < 0 {
		return nil, fmt.Errorf("size %q is not a number", b[offSize:offSize+12])
	}
	if t, err := fieldNumber(b[offTime : offTime+12]); err == nil {
		h.time = time.Unix(t, 0)
	}
	h.name = fieldText(b[offName : offName+100])
	// Only POSIX archives have a prefix; GNU's put other fields there.
	if string(b[offMagic:offMagic+6]) == "ustar\x00" {
		if p := fieldText(b[offPrefix : offPrefix+155]); p != "" {
			h.name = p + "/" + h.name
		}
	}
	h.more = h.kind == typeSparse && b[offMore] != 0
	return h, nil
}

// fieldText returns a field up to its first NUL.
func fieldText(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// fieldNumber reads octal digits between spaces and NULs, or GNU's base 256 when the first bit is set.
func fieldNumber(b []byte) (int64, error) {
	if b[0]&0x80 != 0 {
		// Two's complement; only what fits 63 bits is a size. Fields have 8 or 12 bytes.
		v := uint64(0)
		for _, c := range b[1:] {
			if b[0] != 0x80 || v > math.MaxInt64>>8 {
				return 0, errors.New("out of range")
			}
			v = v<<8 | uint64(c)
		}
		return int64(v), nil
	}
	s := strings.Trim(string(b), " \x00")
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 8, 63)
	return int64(v), err
}

// paxRecords has the records of pax headers that matter here.
type paxRecords struct {
	name       string
	size       int64 // -1 if there is none
	sparse     bool
	sparseName string // A sparse member has this name, and its header has another one.
}

// parse reads the records of a pax header, "length key=value\n" each.
func (p *paxRecords) parse(b []byte) error {
	for len(b) > 0 {
		digits, _, ok := bytes.Cut(b[:min(len(b), 20)], []byte(" "))
		n, err := strconv.ParseUint(string(digits), 10, 31)
		if !ok || err != nil || int(n) > len(b) || int(n) < len(digits)+3 || b[n-1] != '\n' {
			return errors.New("pax record has no proper length")
		}
		key, value, ok := strings.Cut(string(b[len(digits)+1:n-1]), "=")
		if !ok || strings.ContainsRune(value, 0) && key == "path" {
			return errors.New("pax record is not KEY=VALUE")
		}
		b = b[n:]
		switch {
		case key == "path":
			p.name = value
		case key == "size":
			if p.size, err = strconv.ParseInt(value, 10, 64); err != nil || p.size < 0 {
				return fmt.Errorf("pax size %q is not a number", value)
			}
		case strings.HasPrefix(key, "GNU.sparse."):
			p.sparse = true
			if key == "GNU.sparse.name" && !strings.ContainsRune(value, 0) {
				p.sparseName = value
			}
		}
	}
	return nil
}

// maxUstarSize is the largest size that fits a header's eleven octal digits.
const maxUstarSize = 1<<33 - 1

// encodeHeader returns a member's header blocks: a ustar header, behind a pax header if the name or the size needs one.
func encodeHeader(name string, size int64, mtime time.Time) []byte {
	var b, records []byte
	if len(name) > 100 {
		records = appendRecord(records, "path", name)
		// A reader that does not know pax sees the end of the name, cut at a slash if there is one.
		short := name[len(name)-100:]
		if i := strings.IndexByte(short, '/'); i >= 0 && i < 99 {
			short = short[i+1:]
		}
		name = short
	}
	if size > maxUstarSize {
		records = appendRecord(records, "size", strconv.FormatInt(size, 10))
	}
	if records != nil {
		b = appendBlock(b, "PaxHeaders/member", int64(len(records)), mtime, typePax)
		b = append(b, records...)
		b = append(b, make([]byte, roundUp(int64(len(b)), sector)-int64(len(b)))...)
	}
	return appendBlock(b, name, min(size, maxUstarSize), mtime, typeRegular)
}

// appendBlock appends a ustar header block.
func appendBlock(b []byte, name string, size int64, mtime time.Time, kind byte) []byte {
	var h [sector]byte
	copy(h[offName:offName+100], name)
	copy(h[offMode:], "0000644\x00")
	copy(h[offUID:], "0000000\x00")
	copy(h[offGID:], "0000000\x00")
	copy(h[offSize:], fmt.Sprintf("%011o\x00", size))
	copy(h[offTime:], fmt.Sprintf("%011o\x00", min(max(mtime.Unix(), 0), maxUstarSize)))
	copy(h[offMagic:], "ustar\x0000")
	h[offType] = kind
	copy(h[offSum:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[offSum:], fmt.Sprintf("%06o\x00 ", sum))
	return append(b, h[:]...)
}

// appendRecord appends a pax record, whose length counts its own digits.
func appendRecord(b []byte, key, value string) []byte {
	n := len(key) + len(value) + 3
	for digits := len(strconv.Itoa(n)); ; digits = len(strconv.Itoa(n + digits)) {
		if len(strconv.Itoa(n+digits)) == digits {
			return fmt.Appendf(b, "%d %s=%s\n", n+digits, key, value)
		}
	}
}

// roundUp rounds n up to a multiple of to.
func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
