// Package reducer makes the passes over data sets that end in vocabularies.
//
//	pass := &reducer.Pass{Pipeline: spec, Name: "piper", Path: "criteo.vocab"}
//	made, err := pass.Run(ctx, source)
//
// # Overview
//
// The source makes the keys of the vocabulary, by the part of the pipeline before the lookup, and the pass folds them
// into a vocabulary.Builder: 8 bytes a key, and 4 bytes a list. The file is the same bytes whichever source made the
// keys, and in whichever order they came.
//
// A part of the work folder has the form of a sidecar (vocabulary.Counts): a sorted run of each table. Parts are merged
// by sixteen, so that they are few and take little more than their keys do.
//
// # Concurrency
//
// Run folds the columns of a mini-batch on as many goroutines as the machine runs at once. They end before Run returns.
//
// # Errors
//
// Those of packages passes, pipeline and vocabulary, and of the source.
package reducer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Pass is a pass that ends in a vocabulary.
type Pass struct {
	Pipeline *pipeline.Spec // Pipeline declares the vocabulary
	Name     string         // Name is what the pipeline calls the vocabulary
	Path     string         // Path is where the file is written
	Replace  bool           // the file may be there already
	// InMemory keeps the vocabulary in Report.Vocabulary and writes no file: Path, Replace, Extend and Work are not used.
	InMemory bool
	// KeepIDs has a vocabulary in memory keep the ids of all rows, if memory holds them, so that a job over the same
	// partitions neither decodes the keys again nor looks them up. The vocabulary is then good for those only.
	KeepIDs bool
	// Extend names the vocabulary whose keys keep their ids; "" makes a new one. It may be Path.
	Extend    string
	Memory    int64  // bound of the keys in memory; 0 is vocabulary.DefaultMemory
	Temporary string // folder of keys beyond that without a work folder; "" is the system's
	passes.Options
}

// Report is what a pass made.
type Report struct {
	*vocabulary.Built                        // nil for Pass.InMemory
	Vocabulary        *vocabulary.Vocabulary `json:"-"` // nil unless for Pass.InMemory
	Columns           []vocabulary.Column
	Rules             vocabulary.Rules
	Rows              int64 // Rows counts the rows of the data set that pass the pipeline's filter
	passes.Report
}

// madeFile is what a pass notes in its work folder before its file gets its name.
type madeFile struct {
	Path    string // "": nothing is made yet
	Extends string // Extends is the digest of the vocabulary that the file extends, or "none".
	Report  *Report
}

// reduction is a call of Pass.Run.
type reduction struct {
	*Pass
	keys   *pipeline.Spec // the keys' pipeline
	rules  vocabulary.Rules
	base   *vocabulary.Vocabulary // base is the vocabulary that is extended, or nil
	made   madeFile
	report *Report
	data   *passes.Data
	work   *passes.Work
	folded folded // folded is the vocabulary in the making.
}

// Run makes the pass, or goes on with one that ended early in the same work folder. It checks the whole pipeline first.
func (p *Pass) Run(ctx context.Context, source passes.Source) (_ *Report, err error) {
	r := &reduction{Pass: p, report: &Report{}}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if r.work, err = p.OpenWork("vocabulary", source, &r.made, r.facts); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.work.Close()) }()
	written, err := r.isWritten()
	if err != nil {
		return nil, err
	}
	if !written {
		if err := r.reduce(ctx, source); err != nil {
			return nil, err
		}
	}
	return r.report, r.work.Remove()
}

// prepare reads the declaration and the vocabulary that is extended.
func (r *reduction) prepare() error {
	keys, declared, err := r.Pipeline.VocabularyKeys(r.Name)
	if err != nil {
		return err
	}
	r.keys, r.rules = keys, declared.Rules.Normalize()
	switch {
	case r.Path == "" && !r.InMemory:
		return fmt.Errorf("%w: name the file of the vocabulary", passes.ErrOptions)
	case r.Work != "" && r.InMemory:
		return fmt.Errorf("%w: a work folder of a vocabulary in memory", passes.ErrOptions)
	case r.Memory < 0:
		return fmt.Errorf("%w: memory %d: give a number that is not negative", passes.ErrOptions, r.Memory)
	case r.Extend == "" || r.InMemory:
		return nil
	}
	if r.base, err = vocabulary.Load(r.Extend); err != nil {
		return err
	}
	if r.base.Rules != r.rules {
		return fmt.Errorf("%s: %w: it was made with %v, and the pipeline says %v", r.Extend, vocabulary.ErrOther,
			r.base.Rules, r.rules)
	}
	return nil
}

// facts identify the pass. One that replaces the vocabulary that it extends finds its own result there if it ended
// before it had removed the work folder.
func (r *reduction) facts() []passes.Fact {
	document, extends := sha256.Sum256(r.keys.YAML()), r.extends()
	if r.made.Path != "" && r.made.Extends != "none" && r.made.Report.Digest.String() == extends {
		extends = r.made.Extends
	}
	return []passes.Fact{{What: "vocabulary", Is: r.Name}, {What: "set of rules", Is: r.rules.String()},
		{What: "pipeline before the vocabulary", Is: hex.EncodeToString(document[:])},
		{What: "vocabulary to extend", Is: extends}}
}

// extends names the vocabulary that is extended.
func (r *reduction) extends() string {
	if r.base == nil {
		return "none"
	}
	return r.base.Digest.String()
}

// isWritten reports whether an earlier call wrote the file, and ended before it had removed the work folder. The report
// then says what that call made.
func (r *reduction) isWritten() (bool, error) {
	path, err := filepath.Abs(r.Path)
	if err != nil || r.made.Path == "" {
		return false, err
	}
	if r.made.Path != path && r.made.Extends != r.extends() {
		return false, &passes.OtherPassError{Folder: r.Work, What: "file to write", Have: r.made.Path, Want: path}
	}
	there, err := vocabulary.DescribeFile(path)
	if err != nil || r.made.Path != path || there.Digest != r.made.Report.Digest {
		return false, nil // the file is not there, or what it was before
	}
	r.report = r.made.Report
	r.report.Resumed, r.report.Folded, r.report.MiniBatches, r.report.ReceivedBytes = r.report.Rows, 0, 0, 0
	return true, vocabulary.CompleteCounts(path)
}

// checkPath refuses a path that cannot be written before the pass begins.
func (r *reduction) checkPath() error {
	if r.InMemory {
		return nil
	}
	if err := wholefile.CheckFolderOf(r.Path); err != nil || r.Replace {
		return err
	}
	for _, name := range []string{r.Path, r.Path + vocabulary.CountsSuffix} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s: %w: name another file, or let it be replaced", name, os.ErrExist)
		}
	}
	return nil
}

// reduce takes what the work folder lacks, and writes the file.
func (r *reduction) reduce(ctx context.Context, source passes.Source) (err error) {
	if err := r.checkPath(); err != nil {
		return err
	}
	if r.data, err = source.Describe(ctx); err != nil {
		return err
	}
	if rest, ok := r.Pipeline.WithoutVocabularies(); ok {
		resolved, err := r.data.Resolve(rest)
		if err != nil {
			return err
		}
		if _, err := lowering.LowerBeforeSelection(resolved); err != nil {
			return err
		}
	}
	defer func() {
		if r.folded != nil {
			err = errors.Join(err, r.folded.Close())
		}
	}()
	pass := passes.Pass{Data: r.data, Pipeline: r.keys, Begin: r.begin, Options: r.Options}
	taken, err := pass.Run(ctx, source, r.work)
	if err != nil {
		return err
	}
	r.report.Report, r.report.Rules, r.report.Rows = *taken, r.rules, taken.Resumed+taken.Folded
	return r.folded.finish()
}

// columns returns the columns of the vocabulary as the run's pipeline makes them.
func (r *reduction) columns(run passes.Run) ([]vocabulary.Column, error) {
	spec, err := run.Pipeline()
	if err != nil {
		return nil, err
	}
	resolved, err := resolve.Pipeline(spec, r.data.Columns)
	if err != nil {
		return nil, err
	}
	columns, keys := resolved.VocabularyColumns(), run.Schema().Keys
	for i := range columns {
		if len(keys) != len(columns) || keys[i].Name != columns[i].Name {
			return nil, fmt.Errorf("the source makes mini-batches with the keys %v, want %d keys, and %q at %d", keys,
				len(columns), columns[i].Name, i)
		}
	}
	return columns, nil
}

// begin begins the vocabulary, or its next generation.
func (r *reduction) begin(_ context.Context, run passes.Run) (passes.Reducer, error) {
	columns, err := r.columns(run)
	if err != nil {
		return nil, err
	}
	r.report.Columns = columns
	at, err := newPositions(run.Plan(), len(r.data.Manifest.Partitions))
	if err != nil {
		return nil, err
	}
	o := vocabulary.BuilderOptions{Folder: r.work.Temporary(), Memory: r.Memory, Ready: r.noteMade}
	if o.Folder == "" {
		o.Folder = r.Temporary
	}
	for _, p := range r.data.Manifest.Partitions {
		o.Partitions = append(o.Partitions, vocabulary.Counted{Name: p.Name, Digest: p.Content})
	}
	if r.InMemory {
		b, err := vocabulary.NewMemoryBuilder(columns, r.rules, o)
		if err != nil {
			return nil, err
		}
		m := &memoryFold{reduction: r, MemoryBuilder: b, positions: at}
		// Which rows are dropped is not known before they are read.
		m.keepIDs = r.KeepIDs && r.data.Malformed != program.MalformedDrop
		r.folded = m
		return m, nil
	}
	f := &fileFold{reduction: r, positions: at, files: map[string]*vocabulary.Counts{}}
	if err := f.roomToBegin(run, len(columns)); err != nil {
		return nil, err
	}
	if r.base == nil {
		f.Builder, err = vocabulary.NewBuilder(columns, r.rules, o)
	} else if counts, openErr := vocabulary.OpenCounts(r.Extend, r.base.Digest); openErr != nil {
		err = openErr
	} else if f.Builder, err = vocabulary.Extend(r.base, counts, columns, o); err != nil {
		err = fmt.Errorf("%s: %w", r.Extend, err)
	}
	if err != nil {
		return nil, err
	}
	r.folded = f
	return f, nil
}

// noteMade notes what was made before the vocabulary gets its name.
func (r *reduction) noteMade(built *vocabulary.Built) (err error) {
	r.report.Built = built
	r.made.Extends, r.made.Report = r.extends(), r.report
	if r.made.Path, err = filepath.Abs(r.Path); err != nil {
		return err
	}
	return r.work.NoteMade()
}
