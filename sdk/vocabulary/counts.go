package vocabulary

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
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
func (w *countsWriter) appendEntry(e occurrence.Entry) {
	w.file.writeEntry(e)
	w.sizes[len(w.sizes)-1]++
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

// addRun appends a table of sorted entries, and returns where the file at a path will have it.
func (w *countsWriter) addRun(path string, sorted iter.Seq2[occurrence.Entry, error]) (
	occurrence.SortedRun, error) {
	run := occurrence.SortedRun{Path: path, Offset: countsHeader}
	for _, size := range w.sizes {
		run.Offset += int64(size) * occurrence.EntrySize
	}
	w.beginTable()
	var b []byte
	for e, err := range sorted {
		if err == nil {
			err = w.file.err
		}
		if err != nil {
			return run, err
		}
		b = run.AppendEntry(b[:0], e)
		w.file.writeBytes(b)
		w.sizes[len(w.sizes)-1]++
	}
	return run, nil
}

// Counts is a file of entries: first position and count of every key that was seen. It is the sidecar of a vocabulary,
// or a part of a pass (see Builder.WritePartial). All numbers are little-endian. The file has a header, the tables and
// a trailer.
//
//	header   0  8  magic "MRVCOUNT"
//	         8  2  major version, 2 minor version
//	        12  4  tables
//	        16  8  rows of all generations; of a part a bound of the rows' numbers
//	tables         entries in the order of their keys: 8 key, 8 position (row << 24 and the place in the row), 8 count
//	trailer        a table: 8 entries
//	               a partition: 32 its digest in a manifest
//	            4  partitions
//	           32  SHA-256 of the vocabulary; of a part that of the rules and columns, as a vocabulary's header has them
//	            4  CRC32C of everything before it
type Counts struct {
	Path       string
	Vocabulary Digest     // Vocabulary names the vocabulary that the sidecar belongs to
	Rows       uint64     // Rows counts the rows of all generations
	Counted    [][32]byte // digests of the partitions that were counted, of all generations
	Entries    int64      // Entries counts the entries of all tables

	tables []occurrence.SortedRun
}

// OpenCounts reads the sidecar of a vocabulary, whose path is given, and checks all of it. The sidecar is that of
// another vocabulary if the files were mixed up. If the process that wrote the vocabulary ended before the sidecar had
// its name, OpenCounts finds it under the name that it had before.
func OpenCounts(path string, vocabulary Digest) (*Counts, error) {
	c, err := OpenPartial(path + CountsSuffix)
	if err == nil && c.Vocabulary == vocabulary {
		return c, nil
	}
	if next, nextErr := OpenPartial(path + nextCountsSuffix); nextErr == nil && next.Vocabulary == vocabulary {
		return next, nil
	}
	return c, err
}

// CompleteCounts gives the sidecar of the vocabulary at path its name if the process that wrote both ended before that.
func CompleteCounts(path string) error {
	next, err := OpenPartial(path + nextCountsSuffix)
	if err != nil {
		return nil // there is none, or none that can be used: it is replaced
	}
	written, err := DescribeFile(path)
	if err != nil || written.Digest != next.Vocabulary {
		return nil
	}
	return wholefile.Rename(next.Path, path+CountsSuffix)
}

// OpenPartial reads a sidecar or a part and checks all of it. It keeps nothing open: the file must stay as it is while
// a builder uses it.
func OpenPartial(path string) (*Counts, error) {
	c := &Counts{Path: path}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = c.checkContents(f, info.Size())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Tables returns how many tables there are.
func (c *Counts) Tables() int { return len(c.tables) }

// Keys returns how many keys of a table were seen.
func (c *Counts) Keys(table int) int64 { return c.tables[table].Entries }

// checkContents reads a file of size bytes.
func (c *Counts) checkContents(from io.ReaderAt, size int64) error {
	in := &summedReader{r: bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 1<<20)}
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
	if _, err := from.ReadAt(end[:], size-countsTrailer); err != nil {
		return err
	}
	tables, partitions := int64(le.Uint32(header[12:])), int64(le.Uint32(end[:]))
	c.Rows = le.Uint64(header[16:])
	trailerBytes := 8*tables + 32*partitions + countsTrailer
	entries := size - countsHeader - trailerBytes
	if tables == 0 || tables > MaxColumns || c.Rows > MaxRows || entries < 0 || entries%occurrence.EntrySize != 0 {
		return damagedError("%d bytes for %d tables of %d rows", size, tables, c.Rows)
	}
	trailer := make([]byte, trailerBytes)
	if _, err := from.ReadAt(trailer, size-int64(len(trailer))); err != nil {
		return err
	}
	c.Entries = entries / occurrence.EntrySize
	at, left := int64(countsHeader), c.Entries
	for i := range tables {
		n := le.Uint64(trailer[8*i:])
		if n > uint64(left) {
			return damagedError("table %d has %d entries of %d that are left", i, n, left)
		}
		run := occurrence.SortedRun{Path: c.Path, Offset: at, Entries: int64(n)}
		if run.CRC, err = checkEntries(in, i, run.Entries, c.Rows); err != nil {
			return err
		}
		c.tables = append(c.tables, run)
		at, left = at+run.Entries*occurrence.EntrySize, left-run.Entries
	}
	if left > 0 {
		return damagedError("%d entries of no table", left)
	}
	if err := in.readFully(trailer[:len(trailer)-4]); err != nil {
		return err
	}
	for i := range partitions {
		c.Counted = append(c.Counted, [32]byte(trailer[8*tables+32*i:]))
	}
	c.Vocabulary = Digest(trailer[8*tables+32*partitions+4:])
	if want := le.Uint32(trailer[len(trailer)-4:]); want != in.crc {
		return damagedError("the CRC32C is %08x, want %08x", in.crc, want)
	}
	return nil
}

// checkEntries checks that the entries of a table are sorted by key and possible, and returns the CRC32C of them.
func checkEntries(in *summedReader, table, n int64, rows uint64) (crc uint32, err error) {
	var b [occurrence.EntrySize]byte
	last := occurrence.Entry{}
	for i := range n {
		if err := in.readFully(b[:]); err != nil {
			return 0, err
		}
		e := occurrence.DecodeEntry(b[:])
		if i > 0 && e.Key <= last.Key || e.Count == 0 || e.Position>>occurrence.PlaceBits >= rows {
			return 0, damagedError("entry %d of table %d", i, table)
		}
		last, crc = e, crc32c.Update(crc, b[:])
	}
	return crc, nil
}
