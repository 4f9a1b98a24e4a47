package lowering

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// LowerBeforeSelection lowers a pipeline whose selection is not made yet, so that an error of the pipeline is not found
// after a pass over the data set. What it returns makes the tensors of all rows, also of those that the filter drops.
func LowerBeforeSelection(r *resolve.Resolved) (*Lowered, error) {
	if err := r.CheckDroppedRows(); err != nil {
		return nil, err
	}
	rest := *r
	rest.Filter = nil
	return LowerWithLookups(&rest)
}

// hasLookups reports whether ids are looked up behind the drive.
func hasLookups(r *resolve.Resolved) bool {
	for i := range r.Keys {
		if r.Keys[i].LookUp() != nil {
			return true
		}
	}
	return false
}

// Lowered is a pipeline in its lowered form.
type Lowered struct {
	Program *program.Program
	Made    *tensor.Schema // What the program makes.
	Encoded *tensor.Schema // What target encodings make of it.
	Schema  *tensor.Schema // The job's mini-batches.
	// Encodings turn the first mini-batches into the second, see targetencoding.NewApplier. Without them Encoded is Made.
	Encodings []targetencoding.Column
	// Lookups turn the second mini-batches into the third, see vocabulary.NewApplier: a lookup of each key, or nil where
	// its ids stay. The program does not make keys whose ids a vocabulary keeps. Without lookups Lookups is nil, and
	// Schema is Encoded.
	Lookups []*vocabulary.Lookup
	// InDrive names the keys whose ids the program looks up, see LookUpInDrive.
	InDrive []string
	// Selection says which rows the job's mini-batches are cut from; nil: all rows.
	Selection *selection.Selection

	resolved *resolve.Resolved
}

// Behind returns the names of the keys whose ids are looked up behind the drive, by the host that takes the program's
// mini-batches.
func (l *Lowered) Behind() []string {
	var names []string
	for i, v := range l.Lookups {
		if v != nil {
			names = append(names, l.Schema.Keys[i].Name)
		}
	}
	return names
}

// LowerWithLookups is Lower for callers that apply vocabularies and selections.
func LowerWithLookups(r *resolve.Resolved) (*Lowered, error) {
	if err := r.CheckSelection(); err != nil {
		return nil, err
	}
	return lowerWithTables(r, nil)
}

// lowerWithTables lowers a pipeline. The program looks ids up in tables, and the lookups of other keys are left to
// whoever takes the mini-batches.
func lowerWithTables(r *resolve.Resolved, tables *driveTables) (_ *Lowered, err error) {
	l := &Lowered{resolved: r}
	drive := *r // what the drive makes: the keys before their lookups, of every row
	if drive.Filter = nil; r.Filter != nil {
		l.Selection = r.Selection
	}
	encodings := drive.TakeEncodings()
	if encodings != nil && r.Malformed == program.MalformedDrop {
		return nil, problem.ErrDroppedRows
	}
	if !hasLookups(r) && encodings == nil {
		l.Program, l.Made, err = Lower(&drive)
		l.Encoded, l.Schema = l.Made, l.Made
		return l, err
	}
	kept := encodings == nil && takesKept(r)
	drive.Keys = slices.Clone(drive.Keys)
	made := drive.Keys[:0]
	for i := range drive.Keys {
		f := drive.Keys[i]
		l.Lookups = append(l.Lookups, nil)
		if kept && f.LookUp() != nil && f.LookUp().Kept() {
			l.Lookups[i] = f.LookUp()
			continue
		}
		if tables.replaceLookup(&f, i) {
			l.InDrive = append(l.InDrive, f.Name)
		} else if f.LookUp() != nil {
			l.Lookups[i] = f.LookUp().WithoutKept()
			f.LeaveLookup()
		}
		if !f.IDs.FitsInt32() {
			drive.IDs = program.IDs64
		}
		made = append(made, f)
	}
	drive.Keys = made
	if l.Program, l.Made, err = lowerWith(&drive, tables.all()); err != nil {
		return nil, err
	}
	l.Schema = r.Schema()
	l.Encoded, l.Encodings = l.Made, encodings
	if l.Lookups = l.Lookups[:len(r.Keys)]; encodings != nil {
		encoded := *l.Schema
		if encoded.Keys = l.Made.Keys[:len(r.Keys):len(r.Keys)]; len(r.Keys) > 0 {
			encoded.IDs = l.Made.IDs
		}
		l.Encoded = &encoded
	}
	behind := slices.ContainsFunc(l.Lookups, func(v *vocabulary.Lookup) bool { return v != nil })
	if !behind && (encodings == nil || l.Encoded.IDs == l.Schema.IDs) {
		l.Lookups, l.Schema = nil, l.Encoded // no id changes behind the program
	}
	return l, nil
}

// takesKept reports whether mini-batches can have ids that a vocabulary keeps, beside what the program makes: every row
// has one id of every key, and the program makes something.
func takesKept(r *resolve.Resolved) bool {
	s := r.Schema()
	makes := s.Label || len(s.Dense) > 0
	for i := range r.Keys {
		f := &r.Keys[i]
		makes = makes || f.LookUp() == nil || !f.LookUp().Kept()
	}
	return makes && s.Fixed() && !s.Weights && s.Sets() == 0
}

// SelectionOf returns how many rows of each partition of a data set pass the pipeline's filter, and the digest of the
// selection, which is part of the job's. Both are nil without a filter. The error wraps ErrSelection if the selection
// was made for another data set.
func (l *Lowered) SelectionOf(m *dataset.Manifest) (passing []int64, digest *dataset.Digest, err error) {
	if l.Selection == nil {
		return nil, nil, nil
	}
	manifest, err := m.Digest()
	if err != nil {
		return nil, nil, err
	}
	if manifest != l.Selection.Manifest {
		return nil, nil, fmt.Errorf("%w: it was made for the data set %s, and this is %s: make it again",
			problem.ErrSelection,
			l.Selection.Manifest, manifest)
	}
	for i := range m.Partitions {
		if have, want := l.Selection.Rows(i).Tested(), m.Partitions[i].Rows; have != want {
			return nil, nil, fmt.Errorf("%w: partition %q has %d rows, and %d were tested", problem.ErrSelection,
				m.Partitions[i].Name,
				want, have)
		}
	}
	return l.Selection.Counts(), &l.Selection.Digest, nil
}
