package tensor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
)

// Files of an npy folder.
const (
	NpyDense   = "dense.npy"   // <f4 [n, D]; <u2, the bits, if dense is bfloat16, for which NumPy has no type
	NpyLabels  = "labels.npy"  // <f4 [n, 1]
	NpyValues  = "values.npy"  // <i8 or <i4 [N], feature-major over all rows
	NpyLengths = "lengths.npy" // <i4 [F, n]
	NpyWeights = "weights.npy" // <f4 [N], as values.npy
	NpySparse  = "sparse.npy"  // <i8 or <i4 [n, F], only when every length is 1
	NpyKeys    = "keys.json"   // describes the other files; written last
)

// npyBuffers is the memory, in bytes, for all spools of a writer together.
const npyBuffers = 16 << 20

// NpyWriter writes all mini-batches of a run as one keyed jagged tensor, in .npy files of NumPy's format v1.0.
//
// The sparse tensors are feature-major over all rows, so the writer spools each feature's values and lengths to files
// of their own, which Close joins. The writer holds 16 MiB of buffers for any number of rows. Close removes a feature's
// spool as soon as it is copied, so the disk needs room for the output and one feature.
//
// The writer writes to DIR.partial, which Close renames to DIR. A folder without keys.json is incomplete. While it
// writes, DIR.partial.lock keeps other writers away from the folder.
type NpyWriter struct {
	dir, partial string
	lock         *filelock.Held
	schema       *Schema
	rows, values int64 // written so far
	ones         bool  // every length so far is 1
	err          error // The first error of a Write or Close.
	done         bool  // closed or aborted

	dense, labels, sparse *npyFile
	spools                []spool // values of each key, then lengths, then weights
	transposed            []byte  // one mini-batch row-major, for sparse.npy
}

// CheckNpy returns an error if there is something at dir that CreateNpy would not replace.
func CheckNpy(dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("create npy folder %s: it is a file: remove it or choose another name", dir)
	}
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("create npy folder: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("create npy folder %s: %w: remove it or choose another", dir, fs.ErrExist)
	}
	return nil
}

// CreateNpy starts an npy folder at dir, which must not exist or be empty. It removes the files that an earlier run
// left in dir.partial. It fails if dir.partial holds a file that no writer makes, or if another writer, perhaps of
// another process, is writing to dir.
func CreateNpy(dir string, schema *Schema) (*NpyWriter, error) {
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	dir = filepath.Clean(dir)
	if err := CheckNpy(dir); err != nil {
		return nil, err
	}
	w := &NpyWriter{dir: dir, partial: dir + ".partial", schema: schema, ones: true}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("create npy folder: %w", err)
	}
	var err error
	if w.lock, err = filelock.HoldOutput(dir); err != nil {
		return nil, fmt.Errorf("create npy folder: %w", err)
	}
	if err := removePartial(w.partial); err != nil {
		return nil, errors.Join(err, w.lock.Release())
	}
	if err := os.MkdirAll(w.partial, 0o777); err != nil {
		return nil, errors.Join(fmt.Errorf("create npy folder: %w", err), w.lock.Release())
	}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// open creates the files that are written row by row, and the spools.
func (w *NpyWriter) open() (err error) {
	s := w.schema
	if len(s.Dense) > 0 {
		if w.dense, err = createNpyFile(w.partial, NpyDense); err != nil {
			return err
		}
	}
	if s.Label {
		if w.labels, err = createNpyFile(w.partial, NpyLabels); err != nil {
			return err
		}
	}
	if f := len(s.Keys); f > 0 {
		if w.sparse, err = createNpyFile(w.partial, NpySparse); err != nil {
			return err
		}
		kinds := []string{"values", "lengths", "weights"}
		if !s.Weights {
			kinds = kinds[:2]
		}
		limit := max(npyBuffers/(len(kinds)*f), 4096)
		for _, kind := range kinds {
			for key := range f {
				w.spools = append(w.spools, spool{path: filepath.Join(w.partial, fmt.Sprintf("%s%s-%d", spoolPrefix,
					kind, key)), limit: limit})
			}
		}
	}
	return nil
}

// Write appends a mini-batch. After an error the folder cannot be finished: call Abort.
func (w *NpyWriter) Write(m *MiniBatch) error {
	if w.err == nil && w.done {
		return fmt.Errorf("write to npy folder %s: %w", w.dir, fs.ErrClosed)
	}
	if w.err == nil {
		w.err = w.write(m)
	}
	return w.err
}

func (w *NpyWriter) write(m *MiniBatch) error {
	if m.Unique != nil { // a folder has every row
		whole, err := m.Expand()
		if err != nil {
			return fmt.Errorf("npy folder %s: mini-batch %v: %w", w.dir, m.Name, err)
		}
		m = whole
	}
	if !m.Schema.Equal(w.schema) {
		return fmt.Errorf("npy folder %s: %w: mini-batch %v has another schema", w.dir, ErrShape, m.Name)
	}
	if err := m.Validate(); err != nil {
		return fmt.Errorf("npy folder %s: mini-batch %v: %w", w.dir, m.Name, err)
	}
	if w.dense != nil {
		dense := Bytes(m.Dense)
		if w.schema.DenseDType() == BFloat16 {
			dense = Bytes(m.Dense16)
		}
		if err := w.dense.write(dense); err != nil {
			return err
		}
	}
	if w.labels != nil {
		if err := w.labels.write(Bytes(m.Label)); err != nil {
			return err
		}
	}
	if err := w.writeSparse(m); err != nil {
		return err
	}
	w.rows += int64(m.Rows)
	w.values += int64(m.Values())
	return nil
}

// writeSparse spools the sparse tensors of a mini-batch, and writes sparse.npy as long as every length is 1.
func (w *NpyWriter) writeSparse(m *MiniBatch) error {
	f, s := len(w.schema.Keys), w.schema
	if f == 0 {
		return nil
	}
	values, weights, size := Bytes(m.Values32), Bytes(m.Weights), 4
	if s.IDs == Int64 {
		values, size = Bytes(m.Values64), 8
	}
	lengths := m.Lengths
	if s.Fixed() {
		lengths = make([]int32, m.Rows)
		for i := range lengths {
			lengths[i] = 1
		}
	}
	for _, l := range lengths {
		w.ones = w.ones && l == 1
	}
	o := m.OffsetPerKey()
	for key := range f {
		if err := w.spools[key].write(values[o[key]*int64(size) : o[key+1]*int64(size)]); err != nil {
			return err
		}
		of := lengths
		if !s.Fixed() {
			of = lengths[key*m.Rows : (key+1)*m.Rows]
		}
		if err := w.spools[f+key].write(Bytes(of)); err != nil {
			return err
		}
		if s.Weights {
			if err := w.spools[2*f+key].write(weights[o[key]*4 : o[key+1]*4]); err != nil {
				return err
			}
		}
	}
	if w.sparse == nil {
		return nil
	}
	if !w.ones {
		err := errors.Join(w.sparse.f.Close(), os.Remove(w.sparse.f.Name()))
		w.sparse, w.transposed = nil, nil
		if err != nil {
			return fmt.Errorf("npy: give up %s: %w", NpySparse, err)
		}
		return nil
	}
	w.transposed = append(w.transposed[:0], values...)
	for key := range f {
		for r := range m.Rows {
			copy(w.transposed[(r*f+key)*size:][:size], values[(key*m.Rows+r)*size:])
		}
	}
	return w.sparse.write(w.transposed)
}

// Close joins the spools, writes keys.json and renames the folder. If it fails, the files stay in DIR.partial until
// Abort or the next CreateNpy.
func (w *NpyWriter) Close() error {
	if w.done || w.err != nil {
		return w.err
	}
	w.err = w.finish()
	w.done = w.err == nil
	return w.err
}

// finish is Close without its state.
func (w *NpyWriter) finish() error {
	s, f := w.schema, int64(len(w.schema.Keys))
	files := map[string]npyHeader{}
	end := func(file *npyFile, dtype DType, shape ...int64) error {
		h := npyHeader{DType: npyType(dtype), Shape: shape}
		files[filepath.Base(file.f.Name())] = h
		return file.finish(h)
	}
	if w.dense != nil {
		if err := end(w.dense, s.DenseDType(), w.rows, int64(len(s.Dense))); err != nil {
			return err
		}
		w.dense = nil
	}
	if w.labels != nil {
		if err := end(w.labels, Float32, w.rows, 1); err != nil {
			return err
		}
		w.labels = nil
	}
	if w.sparse != nil {
		if err := end(w.sparse, s.IDs, w.rows, f); err != nil {
			return err
		}
		w.sparse = nil
	}
	if f > 0 {
		for i, join := range []struct {
			name  string
			dtype DType
			shape []int64
		}{
			{NpyValues, s.IDs, []int64{w.values}},
			{NpyLengths, Int32, []int64{f, w.rows}},
			{NpyWeights, Float32, []int64{w.values}},
		} {
			from := int64(i) * f
			if from >= int64(len(w.spools)) {
				break
			}
			file, err := joinSpools(w.partial, join.name, w.spools[from:from+f])
			if err != nil {
				return err
			}
			if err := end(file, join.dtype, join.shape...); err != nil {
				return err
			}
		}
	}
	if err := w.writeKeys(files); err != nil {
		return err
	}
	if err := wholefile.SyncFolder(w.partial); err != nil {
		return fmt.Errorf("finish npy folder: %w", err)
	}
	// An empty folder may have the name; os.Rename does not replace it.
	if err := os.Remove(w.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish npy folder: %w", err)
	}
	if err := wholefile.Rename(w.partial, w.dir); err != nil {
		return fmt.Errorf("finish npy folder: %w", err)
	}
	return w.lock.Release()
}

// NpyVersion is the version of the folders that NpyWriter writes, as keys.json has it.
const NpyVersion = 1

// keysJSON is keys.json.
type keysJSON struct {
	Version       int                  `json:"version"`
	Rows          int64                `json:"rows"`
	Values        int64                `json:"values"`
	Dense         []string             `json:"dense"`
	Keys          []string             `json:"keys"`
	NumEmbeddings []int64              `json:"num_embeddings"`
	DenseType     string               `json:"dense_type,omitempty"` // bfloat16; left out where it is float32
	Files         map[string]npyHeader `json:"files"`                // encoding/json sorts them
}

// writeKeys writes keys.json.
func (w *NpyWriter) writeKeys(files map[string]npyHeader) error {
	k := keysJSON{
		Version: NpyVersion, Rows: w.rows, Values: w.values, Dense: w.schema.Dense, Keys: w.schema.KeyNames(),
		NumEmbeddings: []int64{}, Files: files,
	}
	if k.Dense == nil {
		k.Dense = []string{}
	} else if d := w.schema.DenseDType(); d != Float32 {
		k.DenseType = d.String()
	}
	for _, key := range w.schema.Keys {
		k.NumEmbeddings = append(k.NumEmbeddings, key.NumEmbeddings)
	}
	f, err := os.Create(filepath.Join(w.partial, NpyKeys))
	if err != nil {
		return fmt.Errorf("write %s: %w", NpyKeys, err)
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	err = enc.Encode(k)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", NpyKeys, err)
	}
	return nil
}

// Abort removes DIR.partial. It has no effect after a Close that succeeded, so a caller can defer it.
func (w *NpyWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.err == nil {
		w.err = fmt.Errorf("npy folder %s: %w", w.dir, fs.ErrClosed)
	}
	for _, f := range []*npyFile{w.dense, w.labels, w.sparse} {
		if f != nil {
			f.f.Close() // the file is removed next, so its error does not matter
		}
	}
	return errors.Join(removePartial(w.partial), w.lock.Release())
}

// removePartial removes a folder if it holds only files that a writer makes.
func removePartial(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove npy folder: %w", err)
	}
	ours := " " + strings.Join([]string{NpyDense, NpyLabels, NpyValues, NpyLengths, NpyWeights, NpySparse, NpyKeys},
		" ") + " "
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), spoolPrefix) &&
			!strings.Contains(ours, " "+e.Name()+" ") {
			return fmt.Errorf("remove npy folder %s: %w: %q is not ours: look at it, then remove it", dir, fs.ErrExist,
				e.Name())
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove npy folder: %w", err)
	}
	return nil
}
