package selection

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
)

var (
	// ErrDamaged says that bytes are no selection.
	ErrDamaged = errors.New("selection: damaged")
	// ErrVersion says that a selection is of a version that this build does not read.
	ErrVersion = errors.New("selection: version")
)

// The version of the files that this build writes and reads.
const (
	Major = 1
	Minor = 0
)

// The header and the trailer of a file.
const (
	magic        = "MRSELEC\n"
	headerBytes  = 80
	trailerBytes = 4
)

// Limits of a file.
const (
	maxPartitions = 1 << 24
	maxFileBytes  = 1 << 34
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

func digestOf(file []byte) dataset.Digest { return sha256.Sum256(file) }

// Encode returns the bytes of the selection's file.
func (s *Selection) Encode() []byte {
	b := appendHeader(nil, s.Manifest, s.Filter, len(s.partitions))
	for i := range s.partitions {
		b = s.partitions[i].appendBytes(b)
	}
	return binary.LittleEndian.AppendUint32(b, crc32c.Checksum(b))
}

// appendHeader appends the header of a file.
func appendHeader(b []byte, manifest, filter dataset.Digest, partitions int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(le.AppendUint16(append(b, magic...), Major), Minor)
	b = append(append(b, manifest[:]...), filter[:]...)
	return le.AppendUint32(b, uint32(partitions))
}

// appendBytes appends the rows as a file has them.
func (r *Rows) appendBytes(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.rows))
	for _, c := range r.chunks {
		b = append(b, byte(c.form))
		if c.form == formList {
			b = binary.LittleEndian.AppendUint16(b, uint16(len(c.data)/2))
		}
		b = append(b, c.data...)
	}
	return b
}

// Decode reads what Encode returns. It takes no more memory than a small multiple of the bytes. The error wraps
// ErrDamaged or ErrVersion.
func Decode(b []byte) (*Selection, error) {
	le := binary.LittleEndian
	switch {
	case len(b) < headerBytes+trailerBytes:
		return nil, damaged("%d bytes, a selection has at least %d", len(b), headerBytes+trailerBytes)
	case string(b[:8]) != magic:
		return nil, damaged("it does not begin as a selection")
	case le.Uint16(b[8:]) != Major || le.Uint16(b[10:]) != Minor:
		return nil, fmt.Errorf("%w: %d.%d, this build reads %d.%d", ErrVersion, le.Uint16(b[8:]), le.Uint16(b[10:]),
			Major, Minor)
	}
	body := b[:len(b)-trailerBytes]
	if got, want := le.Uint32(b[len(body):]), crc32c.Checksum(body); got != want {
		return nil, damaged("the CRC32C is %08x, want %08x", got, want)
	}
	s := &Selection{Manifest: dataset.Digest(b[12:44]), Filter: dataset.Digest(b[44:76]), Digest: digestOf(b)}
	n := le.Uint32(b[76:])
	r := &fileReader{rest: body[headerBytes:]}
	if n > maxPartitions || uint64(n) > uint64(len(r.rest)/8) {
		return nil, damaged("%d partitions in %d bytes", n, len(r.rest))
	}
	s.partitions = make([]Rows, n)
	for i := range s.partitions {
		if err := r.partition(&s.partitions[i]); err != nil {
			return nil, damaged("partition %d: %w", i, err)
		}
	}
	if len(r.rest) > 0 {
		return nil, damaged("%d bytes behind the last partition", len(r.rest))
	}
	return s, nil
}

// fileReader reads the partitions of a file.
type fileReader struct{ rest []byte }

func (r *fileReader) take(n int) ([]byte, error) {
	if n > len(r.rest) {
		return nil, io.ErrUnexpectedEOF
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken, nil
}

// partition reads the rows of one partition.
func (r *fileReader) partition(rows *Rows) error {
	head, err := r.take(8)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(head)
	if n > chunkRows*uint64(len(r.rest)) { // a chunk has at least a byte
		return fmt.Errorf("%d rows in %d bytes", n, len(r.rest))
	}
	rows.rows = int64(n)
	var passing []int
	for left := rows.rows; left > 0; left -= chunkRows {
		c, count, err := r.chunk(int(min(left, chunkRows)))
		if err != nil {
			return fmt.Errorf("chunk %d: %w", len(passing), err)
		}
		rows.chunks, passing = append(rows.chunks, c), append(passing, count)
	}
	rows.finish(passing)
	return nil
}

// chunk reads one chunk, and checks that it has the form that its rows demand.
func (r *fileReader) chunk(rows int) (c chunk, passing int, err error) {
	head, err := r.take(1)
	if err != nil {
		return c, 0, err
	}
	switch c.form = form(head[0]); c.form {
	case formNone:
	case formAll:
		passing = rows
	case formList:
		count, err := r.take(2)
		if err != nil {
			return c, 0, err
		}
		passing = int(binary.LittleEndian.Uint16(count))
		if c.data, err = r.take(2 * passing); err != nil {
			return c, 0, err
		}
		before := -1
		for at := 0; at < len(c.data); at += 2 {
			row := int(binary.LittleEndian.Uint16(c.data[at:]))
			if row <= before || row >= rows {
				return c, 0, fmt.Errorf("row %d of %d behind row %d", row, rows, before)
			}
			before = row
		}
		if passing == 0 || passing == rows || 2*passing >= bitmapBytes(rows) {
			return c, 0, fmt.Errorf("a list of %d of %d rows, which has another form", passing, rows)
		}
	case formBitmap:
		if c.data, err = r.take(bitmapBytes(rows)); err != nil {
			return c, 0, err
		}
		for _, b := range c.data {
			passing += bits.OnesCount8(b)
		}
		if unused := rows % 8; unused != 0 && c.data[len(c.data)-1]>>unused != 0 {
			return c, 0, fmt.Errorf("bits behind row %d", rows)
		}
		if passing == 0 || passing == rows || 2*passing < bitmapBytes(rows) {
			return c, 0, fmt.Errorf("a bitmap of %d of %d rows, which has another form", passing, rows)
		}
	default:
		return c, 0, fmt.Errorf("form %d", c.form)
	}
	return c, passing, nil
}

// Write writes the selection's file; the file has its name only when it is whole.
func (s *Selection) Write(path string) error { return wholefile.Write(path, s.Encode()) }

// Load reads a selection's file.
func Load(path string) (s *Selection, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s: %w: it is not a regular file of at most %d bytes", path, ErrDamaged, int64(maxFileBytes))
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, info.Size())); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s, err = Decode(b.Bytes()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
