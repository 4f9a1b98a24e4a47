package vocabulary

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

const (
	magic       = "MRVOCAB\n"
	countsMagic = "MRVCOUNT"
)

// fileWriter writes a file beside its name. The file gets its name when it is whole.
type fileWriter struct {
	path   string
	file   *os.File  // nil: only the digest is made
	buffer []byte    // not yet summed and written
	sum    hash.Hash // nil: the file has no digest
	crc    uint32
	err    error
}

// fileBuffer is how many bytes are summed and written at once.
const fileBuffer = 1 << 20

// createFile begins a file.
func createFile(path string) (*fileWriter, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return nil, err
	}
	return &fileWriter{path: path, file: f, buffer: make([]byte, 0, fileBuffer)}, nil
}

// newDigestWriter begins the digest of a vocabulary's file without the file.
func newDigestWriter(header []byte) *fileWriter {
	w := &fileWriter{buffer: make([]byte, 0, fileBuffer), sum: sha256.New()}
	w.writeBytes(header)
	return w
}

// writeBytes appends bytes.
func (w *fileWriter) writeBytes(b []byte) { w.takeBuffer(append(w.buffer, b...)) }

func (w *fileWriter) writeUint64(x uint64) {
	w.takeBuffer(binary.LittleEndian.AppendUint64(w.buffer, x))
}

func (w *fileWriter) writeEntry(e occurrence.Entry) { w.takeBuffer(e.AppendEncoded(w.buffer)) }

// writeKeys appends keys.
func (w *fileWriter) writeKeys(keys []int64) {
	for len(keys) > 0 {
		buffer := w.buffer
		n := min(len(keys), (fileBuffer-len(buffer))/8) // takeBuffer leaves room for one
		for _, key := range keys[:n] {
			buffer = binary.LittleEndian.AppendUint64(buffer, uint64(key))
		}
		w.takeBuffer(buffer)
		keys = keys[n:]
	}
}

// takeBuffer takes the buffer with more bytes in it.
func (w *fileWriter) takeBuffer(buffer []byte) {
	if w.buffer = buffer; len(buffer) > fileBuffer-occurrence.EntrySize {
		w.flushBuffer()
	}
}

// flushBuffer sums and writes what is in the buffer. The first error is kept until the file is sealed.
func (w *fileWriter) flushBuffer() {
	if w.err == nil {
		w.crc = crc32c.Update(w.crc, w.buffer)
		if w.sum != nil {
			_, _ = w.sum.Write(w.buffer) // it never fails
		}
		if w.file != nil {
			_, w.err = w.file.Write(w.buffer)
		}
	}
	w.buffer = w.buffer[:0]
}

// commitFile ends the file and gives it its name.
func (w *fileWriter) commitFile() error {
	if _, err := w.sealFile(); err != nil {
		return err
	}
	return w.renameToFinal()
}

// writeChecksum appends the checksum, and flushes the buffer.
func (w *fileWriter) writeChecksum() {
	w.flushBuffer()
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer, w.crc)
	w.flushBuffer()
}

// sealFile appends the checksum, brings the file to the disk, and returns its digest. If it fails, it removes the file.
func (w *fileWriter) sealFile() (Digest, error) {
	w.writeChecksum()
	if w.err == nil {
		w.err = w.file.Chmod(0o644)
	}
	if w.err == nil {
		w.err = w.file.Sync()
	}
	if err := errors.Join(w.err, w.file.Close()); err != nil {
		return Digest{}, errors.Join(fmt.Errorf("write %s: %w", w.path, err), removeFile(w.file.Name()))
	}
	if w.sum == nil {
		return Digest{}, nil
	}
	return Digest(w.sum.Sum(nil)), nil
}

// renameToFinal gives a sealed file its name. If it fails, it removes the file.
func (w *fileWriter) renameToFinal() error {
	if err := wholefile.Rename(w.file.Name(), w.path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", w.path, err), removeFile(w.file.Name()))
	}
	return nil
}

// abandonFile removes the file, which has no name yet.
func (w *fileWriter) abandonFile() error {
	return errors.Join(w.file.Close(), removeFile(w.file.Name()))
}

// removeFile removes a file if it is there.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// fileHeader returns the header of a vocabulary's file.
func fileHeader(rules Rules, columns []Column) []byte {
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint16(b, Major)
	b = binary.LittleEndian.AppendUint16(b, Minor)
	b = binary.LittleEndian.AppendUint32(b, 0) // the header's length, set below
	var flags byte
	for i, set := range []bool{rules.Joint, rules.Null.Given, rules.Rare.Given} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, byte(rules.Order), flags, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, rules.Buckets)
	for _, x := range []uint64{
		uint64(rules.Base), uint64(rules.Null.ID), uint64(rules.Rare.ID), rules.MinCount, rules.MaxSize,
	} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(columns)))
	b = binary.LittleEndian.AppendUint32(b, uint32(countTables(columns)))
	for i := range columns {
		c := &columns[i]
		b = append(b, c.Chain[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(c.Table))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Name)))
		b = append(b, c.Name...)
	}
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)))
	return b
}

// checkedHeader returns the header of valid rules and columns.
func checkedHeader(rules Rules, columns []Column) ([]byte, error) {
	if err := rules.Check(); err != nil {
		return nil, err
	}
	if err := checkColumns(columns, rules.Joint); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRules, err)
	}
	return fileHeader(rules, columns), nil
}
