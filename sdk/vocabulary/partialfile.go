package vocabulary

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace/internal/crc32c"
)

const (
	partialMagic = "MRPARTL\n"

	partialHeader = 64
	partialTable  = 8 + 4 // of the trailer
)

// MaxPartials is how many partial files are merged at once.
const MaxPartials = maxOpenRuns

// ErrOtherBuilder says that a partial file was written by a builder of other rules or columns.
var ErrOtherBuilder = errors.New("vocabulary: a partial of other rules or columns")

// PartialFile is a sorted run of each table of a builder: what one part of a pass has seen. A pass that is to survive
// the end of its process writes one with [Builder.WritePartial] from time to time; the process that goes on gives all
// of them to [Builder.Take]. Partials fold in any order, and no row may be in two of them. All numbers are
// little-endian. A file has a header, the tables and a trailer.
//
//	header   0  8  magic "MRPARTL\n"
//	         8  2  major version, 2 minor version
//	        12  4  tables
//	        16  8  rows: a bound of the rows' numbers
//	        24 32  SHA-256 of the rules and columns, as a vocabulary's header holds them
//	        56  8  zero
//	tables         entries in the order of their keys: 8 key, 8 position (row << 24 and the place in the row), 8 count
//	trailer        a table: 8 entries, 4 CRC32C of them
//	            4  CRC32C of everything before it
type PartialFile struct {
	Path    string
	Bytes   int64
	Entries int64 // Entries counts the entries of all tables

	rows   uint64
	maker  Digest
	tables []runFile
}

// partialWriter writes a partial file.
type partialWriter struct {
	file    *fileWriter
	made    PartialFile
	scratch []byte
}

// newPartialWriter begins a file. The caller ends it with commit or abandons it.
func newPartialWriter(path string, maker Digest, rows uint64, tables int) (*partialWriter, error) {
	f, err := createFile(path)
	if err != nil {
		return nil, err
	}
	w := &partialWriter{file: f, made: PartialFile{Path: path, Bytes: partialHeader, rows: rows, maker: maker}}
	b := append([]byte{}, partialMagic...)
	b = binary.LittleEndian.AppendUint16(b, Major)
	b = binary.LittleEndian.AppendUint16(b, Minor)
	b = binary.LittleEndian.AppendUint32(b, uint32(tables))
	b = binary.LittleEndian.AppendUint64(b, rows)
	b = append(b, maker[:]...)
	f.writeBytes(binary.LittleEndian.AppendUint64(b, 0))
	return w, nil
}

// addTable writes the entries of the next table.
func (w *partialWriter) addTable(sorted func(yield func(entry, error) bool)) error {
	run := runFile{path: w.made.Path, offset: w.made.Bytes, kept: true}
	for e, err := range sorted {
		if err == nil {
			err = w.file.err
		}
		if err != nil {
			return err
		}
		w.scratch = e.appendEncoded(w.scratch[:0])
		run.crc = crc32c.Update(run.crc, w.scratch)
		run.entries++
		w.file.writeBytes(w.scratch)
	}
	w.made.tables = append(w.made.tables, run)
	w.made.Entries += run.entries
	w.made.Bytes += run.entries * entrySize
	return nil
}

// commitFile brings the file to the disk and gives it its name.
func (w *partialWriter) commitFile() (*PartialFile, error) {
	for _, run := range w.made.tables {
		b := binary.LittleEndian.AppendUint64(nil, uint64(run.entries))
		w.file.writeBytes(binary.LittleEndian.AppendUint32(b, run.crc))
	}
	w.made.Bytes += int64(len(w.made.tables))*partialTable + 4
	if err := w.file.commitFile(); err != nil {
		return nil, err
	}
	return &w.made, nil
}

// makerDigest names the rules and columns of the builder.
func (b *Builder) makerDigest() (Digest, error) {
	header, err := checkedHeader(b.rules, b.columns)
	return sha256.Sum256(header), err
}

// Spilled reports whether the builder has written runs to disk since it began or since the last WritePartial: the
// memory for keys was short.
func (b *Builder) Spilled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.folder != nil
}

// WritePartial moves everything that was added to a file, which is on the disk and has its name when WritePartial
// returns. Nothing may be added meanwhile. If it fails, what was added is lost, and the builder is of no more use.
func (b *Builder) WritePartial(path string) (_ *PartialFile, err error) {
	maker, err := b.makerDigest()
	if err != nil {
		return nil, err
	}
	w, err := newPartialWriter(path, maker, b.rows.Load(), len(b.tables))
	if err != nil {
		return nil, err
	}
	for _, t := range b.tables {
		t.mu.Lock()
		b.hashed.Add(-int64(t.seen.hashed.used))
		b.dense.Add(-t.seen.dense.memoryBytes())
		err = w.addTable(t.runs.mergedEntries(t.seen.takeEntries()))
		t.runs = runs{compare: compareByKey}
		t.mu.Unlock()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), w.file.abandonFile())
		}
	}
	made, err := w.commitFile()
	return made, errors.Join(err, b.Close())
}

// Take adds the rows of a partial file, which must stay as it is until the builder has finished. The builder must have
// the rules and columns of the one that wrote the file.
func (b *Builder) Take(p *PartialFile) error {
	maker, err := b.makerDigest()
	if err != nil {
		return err
	}
	if p.maker != maker || len(p.tables) != len(b.tables) {
		return fmt.Errorf("%s: %w", p.Path, ErrOtherBuilder)
	}
	for i, t := range b.tables {
		t.mu.Lock()
		if err = b.makeFolder(t); err == nil { // where runs are merged if there are many
			t.runs.files = append(t.runs.files, p.tables[i])
		}
		t.mu.Unlock()
		if err != nil {
			return err
		}
	}
	for {
		now := b.rows.Load()
		if p.rows <= now || b.rows.CompareAndSwap(now, p.rows) {
			return nil
		}
	}
}

// MergePartials makes one file of up to MaxPartials that builders of the same rules and columns wrote. The files stay.
func MergePartials(path string, list ...*PartialFile) (*PartialFile, error) {
	if len(list) == 0 || len(list) > MaxPartials {
		return nil, fmt.Errorf("merge %d partials into %s: want 1 to %d", len(list), path, MaxPartials)
	}
	rows := uint64(0)
	for _, p := range list {
		if p.maker != list[0].maker || len(p.tables) != len(list[0].tables) {
			return nil, fmt.Errorf("%s: %w", p.Path, ErrOtherBuilder)
		}
		rows = max(rows, p.rows)
	}
	w, err := newPartialWriter(path, list[0].maker, rows, len(list[0].tables))
	if err != nil {
		return nil, err
	}
	for i := range list[0].tables {
		sorted := runs{compare: compareByKey}
		for _, p := range list {
			sorted.files = append(sorted.files, p.tables[i])
		}
		if err := w.addTable(sorted.mergedEntries(nil)); err != nil {
			return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), w.file.abandonFile())
		}
	}
	return w.commitFile()
}

// OpenPartial reads and checks a partial file, and keeps nothing open.
func OpenPartial(path string) (*PartialFile, error) {
	p := &PartialFile{Path: path}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = p.checkContents(f, info.Size())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// checkContents reads a file of size bytes.
func (p *PartialFile) checkContents(from io.ReaderAt, size int64) error {
	in := &summedReader{r: bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 1<<20)}
	header, err := in.takeBytes(partialHeader)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if string(header[:8]) != partialMagic {
		return damagedError("it does not begin as a partial of a vocabulary does")
	}
	if major, minor := le.Uint16(header[8:]), le.Uint16(header[10:]); major != Major || minor > Minor {
		return fmt.Errorf("%w: %d.%d, and this program reads up to %d.%d", ErrVersion, major, minor, Major, Minor)
	}
	tables := int64(le.Uint32(header[12:]))
	p.rows, p.maker, p.Bytes = le.Uint64(header[16:]), Digest(header[24:56]), size
	entries := size - partialHeader - partialTable*tables - 4
	if tables == 0 || tables > MaxColumns || p.rows > MaxRows || entries < 0 || entries%entrySize != 0 ||
		le.Uint64(header[56:]) != 0 {
		return damagedError("%d bytes for %d tables of %d rows", size, tables, p.rows)
	}
	trailer := make([]byte, partialTable*tables+4)
	if _, err := from.ReadAt(trailer, size-int64(len(trailer))); err != nil {
		return err
	}
	p.Entries = entries / entrySize
	at, left := int64(partialHeader), p.Entries
	for i := range tables {
		n := le.Uint64(trailer[partialTable*i:])
		if n > uint64(left) {
			return damagedError("table %d has %d entries of %d that are left", i, n, left)
		}
		p.tables = append(p.tables, runFile{path: p.Path, offset: at, entries: int64(n), kept: true,
			crc: le.Uint32(trailer[partialTable*i+8:])})
		at, left = at+int64(n)*entrySize, left-int64(n)
	}
	if left > 0 {
		return damagedError("%d entries of no table", left)
	}
	return p.checkTables(in, trailer)
}

// checkTables reads the tables and the trailer.
func (p *PartialFile) checkTables(in *summedReader, trailer []byte) error {
	for i, run := range p.tables {
		table := &summedReader{r: through{in}}
		if err := checkEntries(table, i, run.entries, p.rows); err != nil {
			return err
		}
		if table.crc != run.crc {
			return damagedError("the CRC32C of table %d is %08x, want %08x", i, table.crc, run.crc)
		}
	}
	if err := in.readFully(trailer[:len(trailer)-4]); err != nil {
		return err
	}
	if want := binary.LittleEndian.Uint32(trailer[len(trailer)-4:]); want != in.crc {
		return damagedError("the CRC32C is %08x, want %08x", in.crc, want)
	}
	return nil
}

// through is a summedReader that another one reads.
type through struct{ in *summedReader }

// Read implements io.Reader.
func (t through) Read(b []byte) (int, error) {
	n, err := t.in.r.Read(b)
	t.in.crc = crc32c.Update(t.in.crc, b[:n])
	return n, err
}
