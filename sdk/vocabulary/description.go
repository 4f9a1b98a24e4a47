package vocabulary

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Description is a vocabulary without its keys. It is enough to check a pipeline that uses the vocabulary, and for the
// schema of its mini-batches, so that a control plane needs neither the keys nor their memory.
type Description struct {
	Rules   Rules
	Columns []Column
	Sizes   []int64 // keys of each table
	Digest  Digest  // Digest is the SHA-256 of the file
}

// MaxDescription bounds the bytes of a description.
const MaxDescription = 128 << 10

// Keys returns how many keys all tables have.
func (d *Description) Keys() int64 {
	var n int64
	for _, size := range d.Sizes {
		n += size
	}
	return n
}

// Bytes returns the length of the file.
func (d *Description) Bytes() int64 {
	return int64(len(fileHeader(d.Rules, d.Columns))) + 8*d.Keys() + 8*int64(len(d.Sizes)) + 4
}

// Vocabulary returns a vocabulary that has no keys at hand: a pipeline that is bound to it can be checked and has its
// schema and its digest, and NewApplier refuses its lookups.
func (d *Description) Vocabulary() *Vocabulary {
	return &Vocabulary{Rules: d.Rules, Columns: d.Columns, Digest: d.Digest, sizes: d.Sizes}
}

// Describe returns the description of a vocabulary of size bytes, which it checks as Read does, except that it does not
// notice a key that a table has twice. Its memory does not grow with the keys.
func Describe(r io.Reader, size int64) (*Description, error) {
	return scanVocabulary(r, size, func([]byte) {})
}

// DescribeFile is Describe of a file.
func DescribeFile(path string) (d *Description, err error) {
	err = withFileContents(path, func(r io.Reader, size int64) error {
		d, err = Describe(r, size)
		return err
	})
	return d, err
}

// Encode returns the form in which a description is sent and stored: the header of the file, then the number of keys of
// each table, 8 bytes each. The digest is not in it.
func (d *Description) Encode() ([]byte, error) {
	b := fileHeader(d.Rules, d.Columns)
	for _, size := range d.Sizes {
		b = binary.LittleEndian.AppendUint64(b, uint64(size))
	}
	if len(b) > MaxDescription {
		return nil, fmt.Errorf("%w: %d columns are described in %d bytes, at most %d: use shorter names, or several "+
			"vocabularies", ErrRules, len(d.Columns), len(b), MaxDescription)
	}
	return b, nil
}

// ReadDescription is the inverse of Encode. digest is that of the vocabulary's file.
func ReadDescription(b []byte, digest Digest) (*Description, error) {
	if len(b) > MaxDescription {
		return nil, damagedError("a description of %d bytes, want at most %d", len(b), MaxDescription)
	}
	r := bytes.NewReader(b)
	v, _, err := readHeader(&summedReader{r: r})
	if err != nil {
		return nil, err
	}
	d := &Description{Rules: v.Rules, Columns: v.Columns, Digest: digest}
	tables := countTables(v.Columns)
	if r.Len() != 8*tables {
		return nil, damagedError("%d bytes behind the header for %d tables", r.Len(), tables)
	}
	d.Sizes, _, err = tableSizes(b[len(b)-8*tables:], &v.Rules, math.MaxInt64)
	return d, err
}

// tableSizes reads the numbers of keys of tables, which together have as many keys as most at most. It returns how many
// of those are left.
func tableSizes(b []byte, rules *Rules, most uint64) (sizes []int64, left uint64, err error) {
	left = most
	for i := range len(b) / 8 {
		n := binary.LittleEndian.Uint64(b[8*i:])
		if bound := min(left, uint64(rules.mostKeys())); n > bound {
			return nil, 0, damagedError("table %d has %d keys, want at most %d", i, n, bound)
		}
		sizes = append(sizes, int64(n))
		left -= n
	}
	return sizes, left, nil
}

// scanVocabulary reads a vocabulary of size bytes and checks it. each gets the bytes of all keys, piece by piece.
func scanVocabulary(r io.Reader, size int64, each func(keys []byte)) (*Description, error) {
	in := &summedReader{r: r}
	sum := sha256.New()
	in.r = io.TeeReader(r, sum)
	v, length, err := readHeader(in)
	if err != nil {
		return nil, err
	}
	tables := countTables(v.Columns)
	keyBytes := size - length - 8*int64(tables) - 4
	if keyBytes < 0 || keyBytes%8 != 0 {
		return nil, damagedError("%d bytes behind the header for %d tables", size-length, tables)
	}
	chunk := make([]byte, min(keyBytes, maxChunk))
	for left := keyBytes; left > 0; {
		part := chunk[:min(left, maxChunk)]
		if err := in.readFully(part); err != nil {
			return nil, err
		}
		each(part)
		left -= int64(len(part))
	}
	sizes, err := in.takeBytes(8 * tables)
	if err != nil {
		return nil, err
	}
	d := &Description{Rules: v.Rules, Columns: v.Columns}
	var left uint64
	if d.Sizes, left, err = tableSizes(sizes, &v.Rules, uint64(keyBytes/8)); err != nil {
		return nil, err
	}
	if left > 0 {
		return nil, damagedError("%d keys of no table", left)
	}
	want := in.crc
	got, err := in.takeBytes(4)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(got) != want {
		return nil, damagedError("the CRC32C is %08x, want %08x", binary.LittleEndian.Uint32(got), want)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(damagedError("bytes behind its end"), err)
	}
	d.Digest = Digest(sum.Sum(nil))
	return d, nil
}

// withFileContents calls f with the contents of a regular file. Errors name the file.
func withFileContents(path string, f func(r io.Reader, size int64) error) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return fmt.Errorf("%s: %w: it is not a regular file", path, ErrDamaged)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err = file.Stat(); err != nil {
		return err
	}
	if err := f(bufio.NewReaderSize(file, 1<<20), info.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
