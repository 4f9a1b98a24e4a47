package vocabulary

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/millrace/millrace/internal/wholefile"
)

// CountsSuffix is what the name of a vocabulary's sidecar ends in.
const CountsSuffix = ".counts"

// nextCountsSuffix is what the name of a sidecar ends in until its vocabulary has its name.
const nextCountsSuffix = CountsSuffix + ".next"

// countsHeader and countsTrailer are the bytes of a sidecar's ends, without its tables' sizes.
const (
	countsHeader  = 24
	countsTrailer = 4 + 32 + 4
)

// countsMajor is the major version of sidecars. Version 2 added the digests of the partitions that they count.
const countsMajor = 2

// countsWriter writes a sidecar.
type countsWriter struct {
	file  *fileWriter
	sizes []uint64
}

func newCountsWriter(path string, tables int, rows uint64) (*countsWriter, error) {
	f, err := createFile(path)
	if err != nil {
		return nil, err
	}
	b := append([]byte{}, countsMagic...)
	b = binary.LittleEndian.AppendUint16(b, countsMajor)
	b = binary.LittleEndian.AppendUint16(b, Minor)
	b = binary.LittleEndian.AppendUint32(b, uint32(tables))
	f.writeBytes(binary.LittleEndian.AppendUint64(b, rows))
	return &countsWriter{file: f}, nil
}

func (w *countsWriter) beginTable() { w.sizes = append(w.sizes, 0) }

// appendEntry appends an entry to the last table. Entries come in the order of their keys.
func (w *countsWriter) appendEntry(e entry) {
	w.file.writeEntry(e)
	w.sizes[len(w.sizes)-1]++
}

// appendEntries appends entries to the last table, in the order of their keys.
func (w *countsWriter) appendEntries(sorted []entry) {
	w.file.writeEntries(sorted)
	w.sizes[len(w.sizes)-1] += uint64(len(sorted))
}

// commitSidecar ends the sidecar of a vocabulary that counts the partitions with these digests.
func (w *countsWriter) commitSidecar(vocabulary Digest, counted [][32]byte) error {
	for _, n := range w.sizes {
		w.file.writeUint64(n)
	}
	for i := range counted {
		w.file.writeBytes(counted[i][:])
	}
	w.file.writeBytes(binary.LittleEndian.AppendUint32(nil, uint32(len(counted))))
	w.file.writeBytes(vocabulary[:])
	return w.file.commitFile()
}

// CountsReader reads a vocabulary's sidecar: first position and count of every key that was seen. All numbers are
// little-endian. A sidecar has a header, the tables and a trailer.
//
//	header   0  8  magic "MRVCOUNT"
//	         8  2  major version, 2 minor version
//	        12  4  tables
//	        16  8  rows of all generations
//	tables         entries in the order of their keys: 8 key, 8 position (row << 24 and the place in the row), 8 count
//	trailer        a table: 8 entries
//	               a partition: 32 its digest in a manifest
//	            4  partitions
//	           32  SHA-256 of the vocabulary
//	            4  CRC32C of everything before it
type CountsReader struct {
	Vocabulary Digest     // Vocabulary names the vocabulary that the sidecar belongs to
	Rows       uint64     // Rows counts the rows of all generations
	Counted    [][32]byte // digests of the partitions that were counted, of all generations

	from  io.ReaderAt
	close func() error
	begin []int64 // begin is where each table begins, in bytes
	sizes []int64 // sizes is how many entries each table has
}

// OpenCounts opens the sidecar of a vocabulary, whose path is given, and checks all of it. The sidecar is that of
// another vocabulary if the files were mixed up. If the process that wrote the vocabulary ended before the sidecar had
// its name, OpenCounts finds it under the name that it had before.
func OpenCounts(path string, vocabulary Digest) (*CountsReader, error) {
	r, err := openSidecar(path + CountsSuffix)
	if err == nil && r.Vocabulary == vocabulary {
		return r, nil
	}
	next, nextErr := openSidecar(path + nextCountsSuffix)
	if nextErr != nil {
		return r, err
	}
	if next.Vocabulary != vocabulary {
		return r, errors.Join(err, next.Close())
	}
	if r != nil {
		return next, r.Close()
	}
	return next, nil
}

// CompleteCounts gives the sidecar of the vocabulary at path its name if the process that wrote both ended before that.
func CompleteCounts(path string) error {
	next, err := openSidecar(path + nextCountsSuffix)
	if err != nil {
		return nil // there is none, or none that can be used: it is replaced
	}
	written, err := DescribeFile(path)
	if err != nil || written.Digest != next.Vocabulary {
		return next.Close()
	}
	return errors.Join(next.Close(), wholefile.Rename(path+nextCountsSuffix, path+CountsSuffix))
}

// openSidecar opens a sidecar and checks all of it.
func openSidecar(path string) (_ *CountsReader, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &CountsReader{from: f, close: f.Close}
	if err := r.checkSidecar(info.Size()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *CountsReader) Close() error { return r.close() }

// Tables returns how many tables there are.
func (r *CountsReader) Tables() int { return len(r.sizes) }

// Keys returns how many keys of a table were seen.
func (r *CountsReader) Keys(table int) int64 { return r.sizes[table] }

// checkSidecar reads a sidecar of size bytes.
func (r *CountsReader) checkSidecar(size int64) error {
	in := &summedReader{r: bufio.NewReaderSize(io.NewSectionReader(r.from, 0, size), 1<<20)}
	header, err := in.takeBytes(countsHeader)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if string(header[:8]) != countsMagic {
		return damagedError("it does not begin as a vocabulary's counts do")
	}
	if major, minor := le.Uint16(header[8:]), le.Uint16(header[10:]); major != countsMajor || minor > Minor {
		return fmt.Errorf("%w: counts of version %d.%d, and this program reads %d.%d: build the vocabulary again",
			ErrVersion, major, minor, countsMajor, Minor)
	}
	if size < countsHeader+countsTrailer {
		return damagedError("%d bytes", size)
	}
	var end [countsTrailer]byte
	if _, err := r.from.ReadAt(end[:], size-countsTrailer); err != nil {
		return err
	}
	tables, partitions := int64(le.Uint32(header[12:])), int64(le.Uint32(end[:]))
	r.Rows = le.Uint64(header[16:])
	trailerBytes := 8*tables + 32*partitions + countsTrailer
	entries := size - countsHeader - trailerBytes
	if tables == 0 || tables > MaxColumns || r.Rows > MaxRows || entries < 0 || entries%entrySize != 0 {
		return damagedError("%d bytes for %d tables of %d rows", size, tables, r.Rows)
	}
	trailer := make([]byte, trailerBytes)
	if _, err := r.from.ReadAt(trailer, size-int64(len(trailer))); err != nil {
		return err
	}
	at, left := int64(countsHeader), entries/entrySize
	for i := range tables {
		n := le.Uint64(trailer[8*i:])
		if n > uint64(left) {
			return damagedError("table %d has %d entries of %d that are left", i, n, left)
		}
		r.begin, r.sizes = append(r.begin, at), append(r.sizes, int64(n))
		at, left = at+int64(n)*entrySize, left-int64(n)
	}
	if left > 0 {
		return damagedError("%d entries of no table", left)
	}
	for i, n := range r.sizes {
		if err := checkEntries(in, i, n, r.Rows); err != nil {
			return err
		}
	}
	if err := in.readFully(trailer[:len(trailer)-4]); err != nil {
		return err
	}
	for i := range partitions {
		r.Counted = append(r.Counted, [32]byte(trailer[8*tables+32*i:]))
	}
	r.Vocabulary = Digest(trailer[8*tables+32*partitions+4:])
	if want := le.Uint32(trailer[len(trailer)-4:]); want != in.crc {
		return damagedError("the CRC32C is %08x, want %08x", want, in.crc)
	}
	return nil
}

// checkEntries checks that the entries of a table are sorted by key and possible.
func checkEntries(in *summedReader, table int, n int64, rows uint64) error {
	var b [entrySize]byte
	last := entry{}
	for i := range n {
		if err := in.readFully(b[:]); err != nil {
			return err
		}
		e := decodeEntry(b[:])
		if i > 0 && e.key <= last.key || e.count == 0 || e.position>>placeBits >= rows {
			return damagedError("entry %d of table %d", i, table)
		}
		last = e
	}
	return nil
}

// entriesOfTable returns the entries of a table.
func (r *CountsReader) entriesOfTable(index int) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		in := bufio.NewReaderSize(io.NewSectionReader(r.from, r.begin[index], r.sizes[index]*entrySize), 1<<20)
		var b [entrySize]byte
		for range r.sizes[index] {
			if _, err := io.ReadFull(in, b[:]); err != nil {
				yield(entry{}, fmt.Errorf("read a vocabulary's counts: %w", err))
				return
			}
			if !yield(decodeEntry(b[:]), nil) {
				return
			}
		}
	}
}
