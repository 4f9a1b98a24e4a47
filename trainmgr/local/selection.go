package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
)

// Selections makes the selections of pipelines with filters, and keeps them. A selection depends on the manifest of a
// data set and on a filter. It is made once for both, and again if a file was written since. Selections is safe for
// concurrent use: a caller that needs a selection waits while another call makes it.
type Selections struct {
	Dir        string // folder that keeps selections beyond this process; "" keeps none
	QueueBytes int64  // bound of a pass's mini-batches that wait; 0: the default of trainmgr.Options

	// Started is called with the rows of the data set before a pass, and Progress with the rows of each mini-batch.
	Started  func(rows int64)
	Progress func(rows int64)

	mu   sync.Mutex // held while a selection is made
	made map[selectionKey]keptSelection
}

// keptSelection is a selection and the stamps of the files that it was made of.
type keptSelection struct {
	*selection.Selection
	stamps map[string]api.Stamp
}

// selectionKey is what a selection depends on.
type selectionKey struct{ manifest, filter dataset.Digest }

// SelectionReport says what Bind found or made.
type SelectionReport struct {
	Digest  dataset.Digest
	Rows    int64 // Rows counts those of the data set.
	Passing int64 // Passing counts those of Rows that pass.
	Kept    bool  // it was made before
}

// Bind returns a pipeline with the selection of its filter for the data set of a storage: one that was kept, or one
// that a pass over the filter's columns makes. It checks the whole pipeline first. Without a filter it returns the
// pipeline and no report.
func (s *Selections) Bind(
	ctx context.Context, storage api.Storage, spec *pipeline.Spec,
) (bound *pipeline.Spec, report *SelectionReport, err error) {
	if spec.Filter == nil {
		return spec, nil, nil
	}
	data, err := storage.Dataset(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the data set: %w", err)
	}
	checked, err := spec.WithoutMissingVocabularies()
	if err != nil {
		return nil, nil, err
	}
	whole, err := data.Resolve(checked)
	if err != nil {
		return nil, nil, err
	}
	if _, err := lowering.LowerBeforeSelection(whole); err != nil {
		return nil, nil, err
	}
	manifest, err := data.Manifest.Digest()
	if err != nil {
		return nil, nil, err
	}
	key := selectionKey{manifest, whole.FilterDigest()}
	s.mu.Lock()
	defer s.mu.Unlock()
	made, err := s.find(key, data.Stamps)
	kept := made.Selection != nil
	if err == nil && !kept {
		made, err = s.make(ctx, storage, data, whole.Filter, key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the selection of the filter: %w", err)
	}
	if s.made == nil {
		s.made = map[selectionKey]keptSelection{}
	}
	s.made[key] = made
	with := *spec
	with.Selection = made.Selection
	return &with, &SelectionReport{Digest: made.Digest, Rows: data.Manifest.Rows(), Passing: made.Passing(), Kept: kept},
		nil
}

// path returns the file that keeps a selection.
func (s *Selections) path(key selectionKey) string {
	name := sha256.Sum256(append(key.manifest[:], key.filter[:]...))
	return filepath.Join(s.Dir, hex.EncodeToString(name[:])+".selection")
}

// stampsPath returns the file that keeps the stamps of the files that a selection was made of.
func (s *Selections) stampsPath(key selectionKey) string { return s.path(key) + ".stamps.json" }

// find returns a selection that was made before, or nil. It ignores a file that is damaged or of another version, and
// a selection of files that were written since.
func (s *Selections) find(key selectionKey, stamps map[string]api.Stamp) (none keptSelection, err error) {
	if made, ok := s.made[key]; ok && api.CheckStamps(made.stamps, stamps) == nil {
		return made, nil
	}
	if s.Dir == "" {
		return none, nil
	}
	then, ok := s.readStamps(key)
	if !ok || api.CheckStamps(then, stamps) != nil {
		return none, nil
	}
	made, err := selection.Load(s.path(key))
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, selection.ErrDamaged), errors.Is(err, selection.ErrVersion):
		return none, nil
	case err != nil:
		return none, err
	case made.Manifest != key.manifest || made.Filter != key.filter:
		return none, nil
	}
	return keptSelection{made, then}, nil
}

// make makes a selection and keeps it.
func (s *Selections) make(
	ctx context.Context, storage api.Storage, data *api.Dataset, filter *resolve.FilterPass, key selectionKey,
) (none keptSelection, err error) {
	m := data.Manifest
	r, err := selection.NewReducer(m, key.filter, filter.Condition)
	if err != nil {
		return none, err
	}
	r.Progress = s.Progress
	if s.Started != nil {
		s.Started(m.Rows())
	}
	if filter.Spec == nil {
		err = r.AddNumbers(ctx)
	} else if m.Rows() > 0 {
		_, err = passes.Fold(ctx, &PassSource{Storage: storage}, filter.Spec, r, passes.Options{QueueBytes: s.QueueBytes})
	}
	if err != nil {
		return none, err
	}
	made, err := r.Finish()
	if err != nil {
		return none, err
	}
	if s.Dir != "" {
		err = s.keep(made, key, data.Stamps)
	}
	return keptSelection{made, data.Stamps}, err
}

// keep writes a selection, and beside it the stamps of its files. A selection without its stamps is not used.
func (s *Selections) keep(made *selection.Selection, key selectionKey, stamps map[string]api.Stamp) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(s.stampsPath(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := made.Write(s.path(key)); err != nil {
		return err
	}
	b, err := json.Marshal(stamps)
	if err != nil {
		return err
	}
	return wholefile.Write(s.stampsPath(key), b)
}

// readStamps returns the stamps that are kept beside a selection. It reports false if there are none.
func (s *Selections) readStamps(key selectionKey) (stamps map[string]api.Stamp, ok bool) {
	b, err := os.ReadFile(s.stampsPath(key))
	if err != nil || json.Unmarshal(b, &stamps) != nil {
		return nil, false
	}
	return stamps, true
}
