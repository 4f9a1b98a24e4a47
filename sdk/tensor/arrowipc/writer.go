package arrowipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/tensor"
)

// Writer writes mini-batches to an IPC file. Without Close the file has no footer, and readers refuse it.
type Writer struct {
	schema   *tensor.Schema
	fields   []field
	metadata []keyValue
	w        io.Writer
	position int64
	records  []block
	err      error
}

// NewWriter starts a file on w. The caller closes w after Close.
func NewWriter(w io.Writer, s *tensor.Schema) (*Writer, error) {
	fields, metadata, err := columnsOf(s)
	if err != nil {
		return nil, err
	}
	f := &Writer{schema: s, fields: fields, metadata: metadata, w: w}
	err = f.write([]byte(magic + "\x00\x00"))
	if err == nil {
		err = f.write(encapsulated(schemaMessage(fields, metadata), f.position))
	}
	if err != nil {
		return nil, fmt.Errorf("start arrow file: %w", err)
	}
	return f, nil
}

// write writes bytes of the file.
func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.position += int64(n)
	return err
}

// Write appends a mini-batch. It neither copies nor keeps the tensors. After an error the file cannot be finished.
func (w *Writer) Write(m *tensor.MiniBatch) error {
	if w.err == nil {
		if err := w.writeBatch(m); err != nil {
			w.err = fmt.Errorf("arrow mini-batch %d: %w", len(w.records), err)
		}
	}
	return w.err
}

func (w *Writer) writeBatch(m *tensor.MiniBatch) error {
	if !m.Schema.Equal(w.schema) {
		return fmt.Errorf("%w: it has another schema", tensor.ErrShape)
	}
	m, err := m.Expand() // a file has every row
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return err
	}
	columns := make([]column, len(w.fields))
	for i, f := range w.fields {
		columns[i] = listOf(bytesOf(m, f.name), f.element)
	}
	header, body := recordMessage(columns, []keyValue{{metaName, m.Name.String()}, {metaRows, strconv.Itoa(m.Rows)}})
	at := block{offset: w.position, body: body}
	message := encapsulated(header, w.position)
	at.metadata = int32(len(message))
	if err := w.write(message); err != nil {
		return err
	}
	for _, c := range columns {
		for _, buffer := range [][]byte{c.offsets, c.values} {
			if err := w.writePadded(buffer); err != nil {
				return err
			}
		}
	}
	w.records = append(w.records, at)
	return nil
}

// writePadded writes a buffer of a body and the padding behind it.
func (w *Writer) writePadded(buffer []byte) error {
	if err := w.write(buffer); err != nil {
		return err
	}
	return w.write(make([]byte, aligned(w.position)-w.position))
}

// bytesOf returns the bytes of a tensor by its name.
func bytesOf(m *tensor.MiniBatch, name string) []byte {
	switch {
	case name == tensor.TensorDense && m.Schema.DenseDType() == tensor.BFloat16:
		return tensor.Bytes(m.Dense16)
	case name == tensor.TensorDense:
		return tensor.Bytes(m.Dense)
	case name == tensor.TensorLabel:
		return tensor.Bytes(m.Label)
	case name == tensor.TensorLengths:
		return tensor.Bytes(m.Lengths)
	case name == tensor.TensorWeights:
		return tensor.Bytes(m.Weights)
	case m.Schema.IDs == tensor.Int32:
		return tensor.Bytes(m.Values32)
	}
	return tensor.Bytes(m.Values64)
}

// listOf returns a column with one row, the list of the values in the bytes.
func listOf(values []byte, element tensor.DType) column {
	count := int64(len(values) / element.Size())
	return column{count: count, offsets: tensor.Bytes([]int64{0, count}), values: values}
}

// Close writes the footer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	end := binary.LittleEndian.AppendUint64(nil, 0xffffffff) // of the messages: a mark, and the length 0
	end = append(end, footer(w.fields, w.metadata, w.records)...)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(end)-8))
	if err := w.write(append(end, magic...)); err != nil {
		w.err = fmt.Errorf("finish arrow file: %w", err)
		return w.err
	}
	w.err = fmt.Errorf("arrow file: %w", fs.ErrClosed)
	return nil
}

// FileWriter is a Writer on a file. The file is PATH.partial until Close renames it to PATH. While it is written,
// PATH.partial.lock keeps other writers away from it.
type FileWriter struct {
	*Writer
	lock       *filelock.Held
	f          *os.File
	path, part string
	done       bool
}

// CheckPath returns an error if Create cannot make a file at path: it exists, or its folder does not.
func CheckPath(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("create arrow file %s: %w: remove it or choose another", path, fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create arrow file: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("create arrow file: %w", err)
	}
	return nil
}

// Create starts an IPC file at path, which must not exist. It overwrites path.partial, which an earlier run may have
// left. It fails if another writer, perhaps of another process, is writing to path.
func Create(path string, s *tensor.Schema) (*FileWriter, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	w := &FileWriter{path: path, part: path + ".partial"}
	var err error
	if w.lock, err = filelock.HoldOutput(path); err != nil {
		return nil, fmt.Errorf("create arrow file: %w", err)
	}
	if w.f, err = os.Create(w.part); err != nil {
		return nil, errors.Join(fmt.Errorf("create arrow file: %w", err), w.lock.Release())
	}
	if w.Writer, err = NewWriter(w.f, s); err != nil {
		w.Writer = &Writer{}
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// Close finishes the file, syncs it and renames it to its path. If it fails, path.partial stays until Abort.
func (w *FileWriter) Close() error {
	if err := w.Writer.Close(); err != nil {
		return err
	}
	if err := errors.Join(w.f.Sync(), w.f.Close()); err != nil {
		return fmt.Errorf("finish arrow file: %w", err)
	}
	if err := wholefile.Rename(w.part, w.path); err != nil {
		return fmt.Errorf("finish arrow file: %w", err)
	}
	w.done = true
	if err := w.lock.Release(); err != nil {
		return fmt.Errorf("finish arrow file: %w", err)
	}
	return nil
}

// Abort removes path.partial. It has no effect after a Close that succeeded, so a caller can defer it.
func (w *FileWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.err = fmt.Errorf("arrow file: %w", fs.ErrClosed)
	_ = w.f.Close() // Close may have closed it, and the file is removed next
	if err := errors.Join(os.Remove(w.part), w.lock.Release()); err != nil {
		return fmt.Errorf("remove arrow file: %w", err)
	}
	return nil
}
