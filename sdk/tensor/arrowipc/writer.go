package arrowipc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/tensor"
)

// Writer writes mini-batches to an IPC file. Without Close the file has no footer, and readers refuse it.
type Writer struct {
	schema *tensor.Schema
	arrow  *arrow.Schema
	w      *ipc.FileWriter
	n      int
	err    error
}

// NewWriter starts a file on w. The caller closes w after Close.
func NewWriter(w io.Writer, s *tensor.Schema) (*Writer, error) {
	a, err := Schema(s)
	if err != nil {
		return nil, err
	}
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(a))
	if err != nil {
		return nil, fmt.Errorf("start arrow file: %w", err)
	}
	return &Writer{schema: s, arrow: a, w: f}, nil
}

// Write appends a mini-batch. It neither copies nor keeps the tensors. After an error the file cannot be finished.
func (w *Writer) Write(m *tensor.MiniBatch) error {
	if w.err == nil {
		w.err = w.write(m)
	}
	return w.err
}

func (w *Writer) write(m *tensor.MiniBatch) error {
	if !m.Schema.Equal(w.schema) {
		return fmt.Errorf("arrow mini-batch %d: %w: it has another schema", w.n, tensor.ErrShape)
	}
	m, err := m.Expand() // a file has every row
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return fmt.Errorf("arrow mini-batch %d: %w", w.n, err)
	}
	cols := make([]arrow.Array, w.arrow.NumFields())
	for i, f := range w.arrow.Fields() {
		switch f.Name {
		case tensor.TensorDense:
			if m.Schema.DenseDType() == tensor.BFloat16 {
				cols[i] = listOf(f.Type, m.Dense16)
			} else {
				cols[i] = listOf(f.Type, m.Dense)
			}
		case tensor.TensorLabel:
			cols[i] = listOf(f.Type, m.Label)
		case tensor.TensorValues:
			if w.schema.IDs == tensor.Int32 {
				cols[i] = listOf(f.Type, m.Values32)
			} else {
				cols[i] = listOf(f.Type, m.Values64)
			}
		case tensor.TensorLengths:
			cols[i] = listOf(f.Type, m.Lengths)
		case tensor.TensorWeights:
			cols[i] = listOf(f.Type, m.Weights)
		}
		defer cols[i].Release()
	}
	meta := arrow.NewMetadata([]string{metaName, metaRows}, []string{m.Name.String(), strconv.Itoa(m.Rows)})
	rec := array.NewRecordBatchWithMetadata(w.arrow, cols, 1, meta)
	defer rec.Release()
	if err := w.w.Write(rec); err != nil {
		return fmt.Errorf("arrow mini-batch %d: %w", w.n, err)
	}
	w.n++
	return nil
}

// listOf returns a column with one row, the list v, over v's memory.
func listOf[T tensor.Element](dt arrow.DataType, v []T) arrow.Array {
	elem := dt.(*arrow.LargeListType).Elem()
	child := array.NewData(elem, len(v), []*memory.Buffer{nil, memory.NewBufferBytes(tensor.Bytes(v))}, nil, 0, 0)
	defer child.Release()
	offsets := memory.NewBufferBytes(tensor.Bytes([]int64{0, int64(len(v))}))
	data := array.NewData(dt, 1, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{child}, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// Close writes the footer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if err := w.w.Close(); err != nil {
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
