package summaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr/remote"
)

// DefaultEvery is how long a pass folds mini-batches before it writes a part, if its options do not say so.
const DefaultEvery = 15 * time.Second

// Vocabulary is a pass over the data of a cluster that ends in a vocabulary.
type Vocabulary struct {
	Pipeline *pipeline.Spec // Pipeline declares the vocabulary
	Name     string         // Name is what the pipeline calls the vocabulary
	Path     string         // Path is where the file is written
	Replace  bool           // the file may be there already
	// Extend names the vocabulary whose keys keep their ids; "" makes a new one. It may be Path.
	Extend string

	Partitions []string // patterns of partitions' names; none: all
	Exclude    []string // patterns of partitions that are left out
	Placement  string   // Placement is the job's, as in apiv1.JobSpec

	Work   string        // the work folder; it is removed when the file is written
	Memory int64         // bound of the keys in memory; 0 is vocabulary.DefaultMemory
	Disk   int64         // bound of the work folder's bytes; 0: what the disk has
	Every  time.Duration // the longest time between two parts; 0 means DefaultEvery

	QueueBytes int64        // bound of the mini-batches that wait; 0 is the default of trainmgr.Options
	Logger     *slog.Logger // nil discards the log

	// Started is called before the first mini-batch with the rows of the data set, and those of them that an earlier
	// call took. Progress is called behind each mini-batch.
	Started  func(rows, taken int64)
	Progress func(vocabulary.Progress)
}

// Report is what a pass made.
type Report struct {
	*vocabulary.Built
	Columns []vocabulary.Column
	Rules   vocabulary.Rules
	Rows    int64  // Rows counts the rows of the data set
	Resumed int64  // Resumed counts those of Rows that earlier calls took
	JobName string // JobName names the job, and the earlier calls' jobs

	MiniBatches   int   // MiniBatches counts what this call took
	ReceivedBytes int64 // ReceivedBytes counts the bytes of tensors in them
}

// reduction is a call of Vocabulary.Run.
type reduction struct {
	submission
	pass   *Vocabulary
	keys   *pipeline.Spec // whose mini-batches hold the vocabulary's keys
	rules  vocabulary.Rules
	base   *vocabulary.Vocabulary // base is the vocabulary that is extended, or nil
	report Report
}

// Run makes the pass, or goes on with one that ended early in the same work folder.
func (p *Vocabulary) Run(ctx context.Context, client *remote.Client) (_ *Report, err error) {
	r := &reduction{pass: p, submission: submission{client: client, placement: p.Placement, queueBytes: p.QueueBytes,
		logger: p.Logger}}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if r.folder, err = openFolder(p.Work, r.describe()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.folder.close()) }()
	r.report.JobName = r.folder.description.JobName
	written, err := r.isWritten()
	if err != nil {
		return nil, err
	}
	if !written {
		if err := r.reduce(ctx); err != nil {
			return nil, err
		}
	}
	r.report.Columns, r.report.Rules, r.report.Rows = r.folder.description.columns, r.rules, r.folder.description.Rows
	return &r.report, r.folder.remove()
}

// reduce takes what the work folder lacks, and writes the file.
func (r *reduction) reduce(ctx context.Context) error {
	if err := r.checkPath(); err != nil {
		return err
	}
	whole, err := r.whole()
	if err != nil {
		return err
	}
	if whole {
		r.report.Resumed = r.folder.description.Rows
	} else if err := r.take(ctx); err != nil {
		return err
	}
	return r.write()
}

// isWritten reports whether an earlier call wrote the file, and ended before it had removed the work folder. The report
// then says what that call made.
func (r *reduction) isWritten() (bool, error) {
	d := &r.folder.description
	path, err := filepath.Abs(r.pass.Path)
	if err != nil || d.Made == nil {
		return false, err
	}
	if r.base != nil && d.Extends != r.base.Digest.String() && d.Writes != path {
		return false, &OtherPassError{Folder: r.folder.path, What: "file to write", Have: d.Writes, Want: path}
	}
	there, err := vocabulary.DescribeFile(path)
	if err != nil || d.Writes != path || there.Digest.String() != d.Made.Digest {
		return false, nil // the file is not there, or what it was before
	}
	r.report.Built = &vocabulary.Built{Digest: there.Digest, Bytes: d.Made.Bytes}
	for _, t := range d.Made.Tables {
		r.report.Tables = append(r.report.Tables, vocabulary.BuiltTable(t))
	}
	r.report.Resumed = d.Rows
	return true, vocabulary.CompleteCounts(path)
}

// prepare reads the declaration and the vocabulary that is extended.
func (r *reduction) prepare() error {
	keys, declared, err := r.pass.Pipeline.VocabularyKeys(r.pass.Name)
	if err != nil {
		return err
	}
	r.keys, r.document, r.rules = keys, keys.YAML(), declared.Rules.Normalize()
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if r.pass.Path == "" || r.pass.Work == "" {
		return fmt.Errorf("%w: name the file of the vocabulary, and a work folder", remote.ErrOptions)
	}
	if r.pass.Memory < 0 || r.pass.Disk < 0 || r.pass.Every < 0 {
		return fmt.Errorf("%w: memory %d, disk %d, a part every %v: give numbers that are not negative",
			remote.ErrOptions, r.pass.Memory, r.pass.Disk, r.pass.Every)
	}
	if r.pass.Extend == "" {
		return nil
	}
	if r.base, err = vocabulary.Load(r.pass.Extend); err != nil {
		return err
	}
	if r.base.Rules != r.rules {
		return fmt.Errorf("%s: %w: it was made with %v, and the pipeline says %v", r.pass.Extend, vocabulary.ErrOther,
			r.base.Rules, r.rules)
	}
	return nil
}

// describe returns the pass as pass.json describes it before its first job.
func (r *reduction) describe() description {
	document := sha256.Sum256(r.document)
	d := description{
		Version: descriptionVersion, Vocabulary: r.pass.Name, Rules: r.rules.String(),
		Pipeline: hex.EncodeToString(document[:]), Partitions: r.pass.Partitions, Exclude: r.pass.Exclude,
		JobName: newJobName("vocabulary"),
	}
	if r.base != nil {
		d.Extends = r.base.Digest.String()
	}
	return d
}

// checkPath refuses a path that cannot be written before the pass begins. A file that an earlier call wrote, which
// ended before it had removed the work folder, is written once more.
func (r *reduction) checkPath() error {
	path, err := filepath.Abs(r.pass.Path)
	if err != nil {
		return err
	}
	if r.pass.Replace || r.folder.description.Writes == path {
		return nil
	}
	for _, name := range []string{r.pass.Path, r.pass.Path + vocabulary.CountsSuffix} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s: %w: name another file, or let it be replaced", name, os.ErrExist)
		}
	}
	return nil
}

// whole reports whether the parts of the folder hold the whole data set.
func (r *reduction) whole() (bool, error) {
	d := &r.folder.description
	if d.Job == "" {
		return false, nil
	}
	numbers, err := r.folder.covered()
	if err != nil {
		return false, err
	}
	if d.MiniBatches == 0 {
		return true, nil
	}
	return len(numbers) == 1 && numbers[0].From == 0 && numbers[0].To == d.MiniBatches, nil
}

// newBuilder begins a vocabulary, or its next generation. closeBuilder closes it and what it reads.
func (r *reduction) newBuilder() (b *vocabulary.Builder, closeBuilder func() error, err error) {
	o := vocabulary.BuilderOptions{Folder: r.folder.temporary(), Memory: r.pass.Memory, Ready: r.folder.noteMade}
	columns := r.folder.description.columns
	for _, p := range r.folder.description.Read {
		o.Partitions = append(o.Partitions, vocabulary.Counted{Name: p.Name, Digest: p.Content})
	}
	if r.base == nil {
		b, err = vocabulary.NewBuilder(columns, r.rules, o)
		return b, func() error { return b.Close() }, err
	}
	counts, err := vocabulary.OpenCounts(r.pass.Extend, r.base.Digest)
	if err != nil {
		return nil, nil, err
	}
	b, err = vocabulary.Extend(r.base, counts, columns, o)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", r.pass.Extend, err), counts.Close())
	}
	return b, func() error { return errors.Join(b.Close(), counts.Close()) }, nil
}

// write makes the file of all parts.
func (r *reduction) write() (err error) {
	f := r.folder
	if err := r.roomToFinish(); err != nil {
		return err
	}
	if f.description.Writes, err = filepath.Abs(r.pass.Path); err != nil {
		return err
	}
	if err := f.writeDescription(); err != nil {
		return err
	}
	b, closeBuilder, err := r.newBuilder()
	if err != nil {
		return err
	}
	for i := range f.parts {
		if err := b.Take(f.parts[i].file); err != nil {
			return errors.Join(err, closeBuilder())
		}
	}
	r.report.Built, err = b.Finish(r.pass.Path)
	if err = errors.Join(err, closeBuilder()); err != nil {
		return diskError(filepath.Dir(r.pass.Path), "the vocabulary's file", err)
	}
	return nil
}

// Bytes of a key in the files that a pass ends with.
const (
	bytesInFile   = 8  // in the vocabulary
	bytesInCounts = 24 // in its sidecar, and in a run that is sorted by the order of ids
)

// roomToFinish returns a *RoomError if the disks have too little room for the file, its sidecar, and the runs in which
// the keys are brought in the order of their ids. Parts that share keys are merged first if that helps.
func (r *reduction) roomToFinish() error {
	before := int64(0)
	if r.base != nil {
		before = r.base.Keys()
	}
	check := func() error {
		keys := r.folder.entries() + before
		if err := wantRoom(r.folder.path, "the keys in the order of their ids", bytesInCounts*keys); err != nil {
			return err
		}
		return wantRoom(filepath.Dir(r.pass.Path), "the vocabulary's file and its counts",
			(bytesInFile+bytesInCounts)*keys)
	}
	err := check()
	if err == nil || len(r.folder.parts) == 1 {
		return err
	}
	if err := r.folder.mergeAll(); err != nil {
		return err
	}
	return check()
}
