package summaries

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr/remote"
)

// Statistics is a pass over the data of a cluster that ends in the statistics of its columns.
type Statistics struct {
	Columns []string // patterns; none: every column that a pass can read
	// Pipeline, if it is not nil, takes the place of Columns: the summary is of the values that the pipeline's operators
	// take the statistics Name of, in the rows that its filter chooses.
	Pipeline  *pipeline.Spec
	Name      string
	WholeOnly bool // the summary has no statistics of the partitions
	Batch     int  // rows of a mini-batch; 0: pipeline.DefaultBatch, or the pipeline's. It changes no statistics

	Partitions []string // patterns of partitions' names; none: all
	Exclude    []string // patterns of partitions that are left out
	Placement  string   // Placement is the job's, as in apiv1.JobSpec

	// Work is the work folder. It is removed at the end. Empty: a temporary folder, and a call that ends early begins
	// again.
	Work  string
	Every time.Duration // the longest time between two states; 0 means DefaultEvery

	QueueBytes int64        // bound of the mini-batches that wait; 0 is the default of trainmgr.Options
	Logger     *slog.Logger // nil discards the log

	// Started is called before the first mini-batch with the rows of the data set, and those of them that an earlier
	// call took. Progress is called behind each mini-batch. Finished is called with the summary before the work folder
	// is removed; after an error of it the same call goes on.
	Started  func(rows, taken int64)
	Progress func(StatisticsProgress)
	Finished func(*summary.Summary) error
}

// StatisticsProgress describes a step of a pass: how far the pass is, once a mini-batch is folded in.
type StatisticsProgress struct {
	Rows      int64 // Rows counts the rows of the mini-batch
	Splits    int   // Splits counts the splits of which every mini-batch is folded in
	AllSplits int   // AllSplits counts the splits of the data set
}

// StatisticsReport is what a pass made.
type StatisticsReport struct {
	*summary.Summary
	Skipped []pipeline.SkippedColumn
	Resumed int64  // rows that earlier calls took
	JobName string // JobName names the job, and the earlier calls' jobs

	MiniBatches   int   // MiniBatches counts what this call took
	ReceivedBytes int64 // ReceivedBytes counts the bytes of tensors in them
}

// Names of states in a work folder.
const (
	openName       = "open"           // of the partition that was being read
	partitionNames = "partition-%08d" // of a partition that has ended
)

// statisticsPass is a call of Statistics.Run.
type statisticsPass struct {
	submission
	pass    *Statistics
	columns []pipeline.StatisticsColumn
	ended   int    // partitions whose states are in the folder
	open    []byte // state of the partition behind them; nil: there is none
	reducer *reducer.Reducer
	splits  *dataset.SplitCounter
	kept    time.Time // when the last state was written
	report  StatisticsReport
}

// Run makes the pass, or goes on with one that ended early in the same work folder.
func (p *Statistics) Run(ctx context.Context, client *remote.Client) (_ *StatisticsReport, err error) {
	r := &statisticsPass{pass: p, submission: submission{client: client, order: dataset.Deterministic,
		placement: p.Placement, queueBytes: p.QueueBytes, logger: p.Logger}}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if p.Every < 0 {
		return nil, fmt.Errorf("%w: a state every %v: give a time that is not negative", remote.ErrOptions, p.Every)
	}
	described, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	work := p.Work
	if work == "" {
		temporary, makeErr := scratch.Make("", "millrace-summary-")
		if makeErr != nil {
			return nil, makeErr
		}
		defer func() { err = errors.Join(err, temporary.Close()) }()
		work = temporary.Path
	}
	if r.folder, err = openFolder(work, described); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.folder.close()) }()
	r.report.JobName = r.folder.description.JobName
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	if p.Finished != nil {
		if err := p.Finished(r.report.Summary); err != nil {
			return nil, err
		}
	}
	if err := r.removeStates(); err != nil {
		return nil, err
	}
	return &r.report, r.folder.remove()
}

// describe makes the job's pipeline of the cluster's columns, and returns the pass as pass.json describes it before its
// first job.
func (r *statisticsPass) describe(ctx context.Context) (d description, err error) {
	p := r.pass
	data, err := r.client.Dataset(ctx, p.Partitions, p.Exclude)
	if err != nil {
		return d, err
	}
	spec, err := r.spec(data.Columns)
	if err != nil {
		return d, err
	}
	if err := reducer.CheckSize(len(r.columns), len(data.Manifest.Partitions), p.WholeOnly); err != nil {
		return d, err
	}
	columns, err := json.Marshal(r.columns)
	if err != nil {
		return d, err
	}
	r.document = spec.YAML()
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	return description{Version: descriptionVersion, Statistics: digest(columns), Pipeline: digest(r.document),
		Partitions: p.Partitions, Exclude: p.Exclude, JobName: newJobName("summary")}, nil
}

// spec makes the pipeline whose mini-batches hold the values.
func (r *statisticsPass) spec(schema []pipeline.ColumnInfo) (spec *pipeline.Spec, err error) {
	if r.pass.Pipeline == nil {
		spec, r.columns, r.report.Skipped, err = pipeline.Statistics(schema, r.pass.Columns)
	} else {
		spec, r.columns, err = r.pass.Pipeline.StatisticsPass(r.pass.Name, schema)
	}
	if err == nil && r.pass.Batch > 0 {
		spec.Batch = r.pass.Batch
	}
	return spec, err
}

// take takes every mini-batch that no state of the folder has, in their order, and makes the summary.
func (r *statisticsPass) take(ctx context.Context) (err error) {
	next, err := r.findStates()
	if err != nil {
		return err
	}
	var covered []dataset.Range
	if next > 0 {
		covered = []dataset.Range{{To: next}}
	}
	job, err := r.submit(ctx, covered)
	if err != nil {
		return err
	}
	defer func() { err = r.end(ctx, job, err) }()
	if err := r.begin(ctx, job); err != nil {
		return err
	}
	if err := r.restore(job, next); err != nil {
		return err
	}
	if r.pass.Started != nil {
		r.pass.Started(job.Plan().Rows(), r.report.Resumed)
	}
	r.kept = time.Now()
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return errors.Join(err, r.keepOpen())
		}
		number := mb.Name.Number
		if number < r.reducer.Next() {
			continue // it came before
		}
		at, err := job.Plan().MiniBatch(number)
		if err == nil && number > r.reducer.Next() {
			err = fmt.Errorf("mini-batch %d came, want %d", number, r.reducer.Next())
		}
		if err != nil {
			return err
		}
		if err := r.endPartitions(at.Partition); err != nil {
			return err
		}
		if err := r.reducer.Add(mb); err != nil {
			return err
		}
		r.report.MiniBatches++
		r.report.ReceivedBytes += mb.Bytes()
		if err := r.splits.Add(number); err != nil {
			return err
		}
		if r.pass.Progress != nil {
			r.pass.Progress(StatisticsProgress{Rows: int64(mb.Rows), Splits: r.splits.Done(), AllSplits: job.Plan().Splits()})
		}
		if time.Since(r.kept) >= cmp.Or(r.pass.Every, DefaultEvery) {
			if err := r.keepOpen(); err != nil {
				return err
			}
		}
	}
	if n := r.reducer.Next(); n != job.Plan().MiniBatches() {
		return errors.Join(fmt.Errorf("job %s has ended, and mini-batch %d of %d did not come: what came is kept in %s, "+
			"and the same call goes on from it", job.ID(), n, job.Plan().MiniBatches(), r.folder.path), r.keepOpen())
	}
	r.report.Summary, err = r.reducer.Finish()
	return err
}

// begin checks the job against the folder, or describes it there, and prepares the pass.
func (r *statisticsPass) begin(ctx context.Context, job *remote.Job) error {
	if err := r.sameData(job); err != nil {
		return err
	}
	schema, malformed, err := job.Columns()
	if err != nil {
		return err
	}
	spec, err := r.spec(schema)
	if err != nil {
		return err
	}
	if !bytes.Equal(spec.YAML(), r.document) {
		return errors.New("the columns of the cluster's data changed while the pass was submitted: begin again")
	}
	o := reducer.Options{Job: job.Digest(), Columns: r.columns, Manifest: job.Manifest(), Plan: job.Plan(),
		Malformed: malformed, WholeOnly: r.pass.WholeOnly}
	for i := range r.columns {
		if r.columns[i].Folding != nil && o.Selection == nil {
			if o.Selection, err = job.Selection(ctx); err != nil {
				return err
			}
		}
	}
	if r.reducer, err = reducer.New(o); err != nil {
		return err
	}
	d := &r.folder.description
	if d.Job != "" {
		return nil
	}
	d.job, d.Job = job.Digest(), job.Digest().String()
	d.MiniBatches, d.Rows = job.Plan().MiniBatches(), job.Plan().Rows()
	return r.folder.writeDescription()
}

// statePath returns the file of the state of a partition that has ended.
func (r *statisticsPass) statePath(partition int) string {
	return filepath.Join(r.folder.path, fmt.Sprintf(partitionNames, partition))
}

// readState reads a state of the folder; nil: it is not there.
func (r *statisticsPass) readState(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// findStates counts the states in the folder, and returns the number of the first mini-batch that is in none.
func (r *statisticsPass) findStates() (next uint64, err error) {
	if r.folder.description.Job == "" {
		return 0, nil
	}
	var last []byte
	for {
		b, err := r.readState(r.statePath(r.ended))
		if err != nil {
			return 0, err
		}
		if b == nil {
			break
		}
		last = b
		r.ended++
	}
	if r.open, err = r.readState(filepath.Join(r.folder.path, openName)); err != nil {
		return 0, err
	}
	if r.open != nil {
		at, err := reducer.Describe(r.open)
		if err != nil {
			return 0, fmt.Errorf("%s: %w: %s: %w", r.folder.path, ErrWork, openName, err)
		}
		if at.Partition == r.ended {
			return at.Next, nil
		}
		r.open = nil // of a partition that has ended since
	}
	if last == nil {
		return 0, nil
	}
	at, err := reducer.Describe(last)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrWork, r.statePath(r.ended-1), err)
	}
	return at.Next, nil
}

// restore gives the reducer the states of the folder, after which a mini-batch comes next.
func (r *statisticsPass) restore(job *remote.Job, next uint64) error {
	damaged := func(err error) error { return fmt.Errorf("%s: %w: %w", r.folder.path, ErrWork, err) }
	for i := range r.ended {
		state, err := r.readState(r.statePath(i))
		if err != nil {
			return err
		}
		if err := r.reducer.Restore(state); err != nil {
			return damaged(err)
		}
		if at, err := job.Plan().MiniBatch(r.reducer.Next()); err != nil || at.Partition <= i {
			return damaged(fmt.Errorf("the state of partition %d ends before mini-batch %d", i, r.reducer.Next()))
		}
		if err := r.reducer.EndPartitions(i + 1); err != nil {
			return damaged(err)
		}
	}
	if r.open != nil {
		if err := r.reducer.Restore(r.open); err != nil {
			return damaged(err)
		}
	}
	r.open = nil
	if r.reducer.Next() != next {
		return damaged(fmt.Errorf("its states end before mini-batch %d, want %d", r.reducer.Next(), next))
	}
	r.splits = dataset.NewSplitCounter(job.Plan())
	for number := range next {
		at, err := job.Plan().MiniBatch(number)
		if err == nil {
			err = r.splits.Add(number)
		}
		if err != nil {
			return err
		}
		r.report.Resumed += int64(at.Rows)
	}
	return nil
}

// endPartitions keeps the states of the partitions before one, and ends them.
func (r *statisticsPass) endPartitions(before int) error {
	for i := r.reducer.Partition(); i < before; i++ {
		if err := r.keep(r.statePath(i)); err != nil {
			return err
		}
		if err := r.reducer.EndPartitions(i + 1); err != nil {
			return err
		}
	}
	return nil
}

// keepOpen keeps the state of the partition that is being read. The last mini-batch of all is never kept: a call that
// goes on needs a job that has something to deliver.
func (r *statisticsPass) keepOpen() error {
	if r.reducer.Next() == r.folder.description.MiniBatches {
		return nil
	}
	return r.keep(filepath.Join(r.folder.path, openName))
}

// keep writes the state of the reducer's partition to a file.
func (r *statisticsPass) keep(path string) error {
	state, err := r.reducer.State()
	if err != nil {
		return err
	}
	if err := wholefile.Write(path, state); err != nil {
		return diskError(r.folder.path, "the state of the pass", err)
	}
	r.kept = time.Now()
	r.logger.Debug("kept the state of a pass", "file", path, "bytes", len(state))
	return nil
}

// removeStates removes the states of a pass that is done.
func (r *statisticsPass) removeStates() error {
	list, err := os.ReadDir(r.folder.path)
	if err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(partitionNames, "%")
	for _, entry := range list {
		if name := entry.Name(); strings.HasPrefix(name, prefix) || name == openName {
			if err := os.Remove(filepath.Join(r.folder.path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
