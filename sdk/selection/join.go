package selection

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/dataset"
)

// ErrPart says that a selection of one partition is of other rows, or of another filter, than the selection that it was
// to be joined to.
var ErrPart = errors.New("selection: part")

// PartManifest returns the manifest of one partition alone. The selection of that manifest is the partition's part of a
// selection of every data set that has the partition: it depends on the partition and on the filter, and on nothing
// else.
func PartManifest(p dataset.Partition) (*dataset.Manifest, error) {
	return dataset.NewManifest([]dataset.Partition{p})
}

// CheckPart returns an error that wraps ErrPart if a selection is not the part of a partition for a filter.
func CheckPart(part *Selection, p dataset.Partition, filter dataset.Digest) error {
	m, err := PartManifest(p)
	if err != nil {
		return err
	}
	digest, err := m.Digest()
	switch {
	case err != nil:
		return err
	case part.Partitions() != 1:
		return fmt.Errorf("%w: it is of %d partitions, want %s alone", ErrPart, part.Partitions(), p.Name)
	case part.Rows(0).Tested() != p.Rows:
		return fmt.Errorf("%w: %d rows were tested, and %s has %d", ErrPart, part.Rows(0).Tested(), p.Name, p.Rows)
	case part.Manifest != digest:
		return fmt.Errorf("%w: it was made of another file than %s", ErrPart, p.Name)
	case part.Filter != filter:
		return fmt.Errorf("%w: the rows of %s were tested with another filter", ErrPart, p.Name)
	}
	return nil
}

// MostBytes returns the most bytes that the part of a partition of some rows has.
func MostBytes(rows int64) int64 {
	chunks := (rows + chunkRows - 1) / chunkRows
	return headerBytes + 8 + 3*chunks + rows/8 + 8 + trailerBytes
}

// Joined describes a file that Join wrote.
type Joined struct {
	Digest  dataset.Digest // SHA-256 of the file
	Bytes   int64
	Passing []int64 // how many rows of each partition pass
}

// Join writes the file of a selection from the parts of its partitions, which part returns one after the other. Memory
// holds one part at a time. The bytes are those that Encode returns for a selection that one Builder made. The error
// wraps ErrPart if a part is not of its partition.
func Join(
	w io.Writer, m *dataset.Manifest, filter dataset.Digest, part func(partition int) (*Selection, error),
) (*Joined, error) {
	manifest, err := m.Digest()
	if err != nil {
		return nil, err
	}
	joined := &Joined{Passing: make([]int64, len(m.Partitions))}
	sums := newChecksums()
	write := func(b []byte) error {
		sums.add(b)
		n, err := w.Write(b)
		joined.Bytes += int64(n)
		return err
	}
	if err := write(appendHeader(nil, manifest, filter, len(m.Partitions))); err != nil {
		return nil, err
	}
	for i := range m.Partitions {
		made, err := part(i)
		if err != nil {
			return nil, err
		}
		if err := CheckPart(made, m.Partitions[i], filter); err != nil {
			return nil, err
		}
		joined.Passing[i] = made.Passing()
		if err := write(made.partitions[0].appendBytes(nil)); err != nil {
			return nil, err
		}
	}
	if err := write(binary.LittleEndian.AppendUint32(nil, sums.crc)); err != nil {
		return nil, err
	}
	joined.Digest = sums.digest()
	return joined, nil
}

// checksums are those of a file's bytes so far.
type checksums struct {
	sha hash.Hash
	crc uint32
}

func newChecksums() *checksums { return &checksums{sha: sha256.New()} }

func (c *checksums) add(b []byte) {
	c.sha.Write(b) // it never fails, by the contract of hash.Hash
	c.crc = crc32c.Update(c.crc, b)
}

// Write implements io.Writer.
func (c *checksums) Write(b []byte) (int, error) {
	c.add(b)
	return len(b), nil
}

func (c *checksums) digest() dataset.Digest { return dataset.Digest(c.sha.Sum(nil)) }

// hasMagic reports whether bytes begin as a selection's file does.
func hasMagic(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }

// CheckFile reads a selection's file in little memory, and returns its digest: the bytes must have the header of a
// selection and its CRC32C. Load finds what else may be wrong. The error wraps ErrDamaged or ErrVersion.
func CheckFile(path string) (digest dataset.Digest, err error) {
	f, err := os.Open(path)
	if err != nil {
		return digest, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return digest, err
	}
	size := info.Size()
	if size < headerBytes+trailerBytes || size > maxFileBytes {
		return digest, damaged("%d bytes, a selection has %d to %d", size, headerBytes+trailerBytes, int64(maxFileBytes))
	}
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(f, header); err != nil {
		return digest, err
	}
	le := binary.LittleEndian
	switch {
	case !hasMagic(header):
		return digest, damaged("it does not begin as a selection")
	case le.Uint16(header[8:]) != Major || le.Uint16(header[10:]) != Minor:
		return digest, fmt.Errorf("%w: %d.%d, this build reads %d.%d", ErrVersion, le.Uint16(header[8:]),
			le.Uint16(header[10:]), Major, Minor)
	}
	sums := newChecksums()
	sums.add(header)
	if _, err := io.CopyN(sums, f, size-headerBytes-trailerBytes); err != nil {
		return digest, err
	}
	trailer := make([]byte, trailerBytes)
	if _, err := io.ReadFull(f, trailer); err != nil {
		return digest, err
	}
	if got, want := sums.crc, le.Uint32(trailer); got != want {
		return digest, damaged("the CRC32C is %08x, and the file says %08x", got, want)
	}
	sums.add(trailer)
	return sums.digest(), nil
}
