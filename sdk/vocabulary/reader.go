package vocabulary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/crc32c"
)

// Load reads a vocabulary's file.
func Load(path string) (v *Vocabulary, err error) {
	err = withFileContents(path, func(r io.Reader, size int64) error {
		v, err = Read(r, size)
		return err
	})
	return v, err
}

// maxListed is the memory in a drive of the largest table whose keys LoadForLookups keeps.
const maxListed = 256 << 20

// LoadForLookups reads the file of a vocabulary that gives keys their ids, and is neither compared nor extended: the
// keys of tables that would take more than 256 MiB of a drive's memory are not at hand, so that a large
// vocabulary of keys within 32 bits takes 11 to 16 bytes a key.
func LoadForLookups(path string) (*Vocabulary, error) { return loadForLookups(path, maxListed) }

func loadForLookups(path string, most uint64) (*Vocabulary, error) {
	d, err := DescribeFile(path)
	if err != nil {
		return nil, err
	}
	r := tableReader{v: &Vocabulary{Rules: d.Rules, Columns: d.Columns, Digest: d.Digest, sizes: d.Sizes}, most: most}
	err = withFileContents(path, func(in io.Reader, size int64) error {
		again, err := scanVocabulary(in, size, r.addRawKeys)
		if err = errors.Join(err, r.endTables()); err == nil && again.Digest != d.Digest {
			err = damagedError("it changed while it was read")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.v, nil
}

// tableReader makes the tables of a vocabulary of its keys, one after the other.
type tableReader struct {
	v    *Vocabulary // whose sizes are those of the file
	most uint64      // as maxListed
	keys []int64     // keys has the keys of the table that is being read
	err  error
}

// addRawKeys takes the bytes of more keys.
func (r *tableReader) addRawKeys(raw []byte) {
	for r.err == nil && len(raw) > 0 {
		r.finishTables()
		if len(r.v.prepared) == len(r.v.sizes) {
			r.err = damagedError("it grew while it was read")
			return
		}
		left := int(r.v.sizes[len(r.v.prepared)]) - len(r.keys)
		n := min(left, len(raw)/8)
		for i := range n {
			r.keys = append(r.keys, int64(binary.LittleEndian.Uint64(raw[8*i:])))
		}
		raw = raw[8*n:]
	}
}

// finishTables makes tables until one lacks keys.
func (r *tableReader) finishTables() {
	for r.err == nil && len(r.v.prepared) < len(r.v.sizes) {
		size := int(r.v.sizes[len(r.v.prepared)])
		if cap(r.keys) < size { // the file has as many keys: Describe has read them
			r.keys = make([]int64, 0, size)
		}
		if len(r.keys) < size {
			return
		}
		r.err = r.v.prepareNext(r.keys)
		if unit.ShapeOf(r.keys).Bytes() > r.most {
			r.v.Tables = append(r.v.Tables, nil)
			r.keys = r.keys[:0]
		} else {
			r.v.Tables = append(r.v.Tables, r.keys[:size:size])
			r.keys = nil
		}
	}
}

// endTables makes the last tables, and returns the error of the first that is none.
func (r *tableReader) endTables() error {
	r.finishTables()
	if r.err == nil && len(r.v.prepared) < len(r.v.sizes) {
		r.err = damagedError("it shrank while it was read")
	}
	return r.err
}

// Read reads a vocabulary of size bytes. It takes no more memory than a small multiple of the bytes that r has.
func Read(r io.Reader, size int64) (*Vocabulary, error) {
	keys := make([]int64, 0, min(max(size, 0), maxChunk)/8)
	d, err := scanVocabulary(r, size, func(raw []byte) {
		if len(keys)+len(raw)/8 > cap(keys) {
			keys = slices.Grow(keys, max(len(keys), len(raw)/8)) // twice as many: append would copy most keys four times
		}
		for i := 0; i < len(raw); i += 8 {
			keys = append(keys, int64(binary.LittleEndian.Uint64(raw[i:])))
		}
	})
	if err != nil {
		return nil, err
	}
	v := &Vocabulary{Rules: d.Rules, Columns: d.Columns, Digest: d.Digest}
	for _, n := range d.Sizes {
		if err := v.prepareNext(keys[:n:n]); err != nil {
			return nil, err
		}
		v.Tables = append(v.Tables, keys[:n:n])
		keys = keys[n:]
	}
	return v, nil
}

// damagedError returns an error that wraps ErrDamaged.
func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// summedReader reads a file and sums it.
type summedReader struct {
	r   io.Reader
	crc uint32
}

// readFully reads all of b.
func (r *summedReader) readFully(b []byte) error {
	if _, err := io.ReadFull(r.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return damagedError("it ends early")
		}
		return err
	}
	r.crc = crc32c.Update(r.crc, b)
	return nil
}

// takeBytes reads n bytes, which the caller has bounded.
func (r *summedReader) takeBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	return b, r.readFully(b)
}

// maxChunk bounds the bytes that are allocated before they have been read.
const maxChunk = 1 << 20

// readHeader reads the header. It returns the vocabulary without tables, and the header's length.
func readHeader(in *summedReader) (*Vocabulary, int64, error) {
	b, err := in.takeBytes(headerSize)
	if err != nil {
		return nil, 0, err
	}
	le := binary.LittleEndian
	if string(b[:8]) != magic {
		return nil, 0, damagedError("it does not begin as a vocabulary does")
	}
	if major, minor := le.Uint16(b[8:]), le.Uint16(b[10:]); major != Major || minor > Minor {
		return nil, 0, fmt.Errorf("%w: %d.%d, and this program reads up to %d.%d", ErrVersion, major, minor, Major, Minor)
	}
	length, flags := le.Uint32(b[12:]), b[17]
	if length < headerSize || length > maxHeader || flags > 7 || b[18] != 0 || b[19] != 0 {
		return nil, 0, damagedError("a header of %d bytes with the flags %02x", length, flags)
	}
	v := &Vocabulary{Rules: Rules{
		Order: Order(b[16]), Joint: flags&1 != 0, Buckets: le.Uint32(b[20:]), Base: int64(le.Uint64(b[24:])),
		Null:     OptionalID{ID: int64(le.Uint64(b[32:])), Given: flags&2 != 0},
		Rare:     OptionalID{ID: int64(le.Uint64(b[40:])), Given: flags&4 != 0},
		MinCount: le.Uint64(b[48:]), MaxSize: le.Uint64(b[56:]),
	}}
	if err := v.Rules.Check(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	columns, tables := le.Uint32(b[64:]), le.Uint32(b[68:])
	left := int64(length) - headerSize
	if columns > MaxColumns || int64(columns)*columnSize > left {
		return nil, 0, damagedError("%d columns in a header of %d bytes", columns, length)
	}
	for range columns {
		if left -= columnSize; left < 0 {
			return nil, 0, damagedError("a header of %d bytes is too short", length)
		}
		if b, err = in.takeBytes(columnSize); err != nil {
			return nil, 0, err
		}
		c := Column{Chain: Digest(b[:32])}
		table, nameBytes := le.Uint32(b[32:]), int64(le.Uint16(b[36:]))
		if left -= nameBytes; table >= tables || nameBytes > MaxNameBytes || left < 0 {
			return nil, 0, damagedError("a column of table %d of %d with a name of %d bytes", table, tables, nameBytes)
		}
		if b, err = in.takeBytes(int(nameBytes)); err != nil {
			return nil, 0, err
		}
		c.Table, c.Name = int(table), string(b)
		v.Columns = append(v.Columns, c)
	}
	if left != 0 {
		return nil, 0, damagedError("%d bytes of the header are left", left)
	}
	if err := checkColumns(v.Columns, v.Rules.Joint); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if countTables(v.Columns) != int(tables) {
		return nil, 0, damagedError("%d tables, and the columns have %d", tables, countTables(v.Columns))
	}
	return v, int64(length), nil
}
