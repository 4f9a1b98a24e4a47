package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/selections"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/selection"
)

// Times and bounds of selections.
const (
	// selectWait bounds how long a call of SelectRows waits for the end of the work.
	selectWait = 10 * time.Second
	// abandonedSelection is how long the rows of a partition are tested after the last call that asked for them.
	abandonedSelection = 30 * time.Second
	// keptSelections bounds the bytes of the parts that a node keeps. A part has at most a bit for each row.
	keptSelections = 4 << 30
	// maxTesting bounds the partitions whose rows are tested at once.
	maxTesting = 256
	// testedAhead is how many mini-batches are made ahead of those that are tested.
	testedAhead = 4
)

// nodeSelections tests the rows of partitions by the filters of passes that the control plane handed to the node.
type nodeSelections struct {
	parts     *selections.Store
	splits    *splits.Table
	manager   *host.Manager
	temporary *scratch.Folder // nil: the folder is kept
	log       *slog.Logger
	ctx       context.Context // ctx is that of the work; it ends with close.
	stop      context.CancelFunc
	wg        sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	passes  map[dataset.Digest]*filterPass
	testing map[testedPartition]*rowTest
	failed  map[testedPartition]error // failed has the errors of tests that no call has learned.
}

// filterPass is a pass over the columns of a filter. It does not change.
type filterPass struct {
	filter    dataset.Digest
	condition *selection.Condition
	manifest  *dataset.Manifest
}

// testedPartition names the rows that are tested.
type testedPartition struct {
	pass      dataset.Digest
	partition int
}

// rowTest is a partition whose rows are being tested. nodeSelections.mu guards tested and asked.
type rowTest struct {
	tested int64
	asked  time.Time     // when a call asked for it last
	ended  chan struct{} // closed at the end
}

// openSelections opens the folder of parts: one of the state folder, or a temporary one.
func openSelections(c *Config, log *slog.Logger) (_ *nodeSelections, err error) {
	s := &nodeSelections{log: log, passes: map[dataset.Digest]*filterPass{},
		testing: map[testedPartition]*rowTest{}, failed: map[testedPartition]error{}}
	folder := filepath.Join(c.StateDir, "selections")
	if c.StateDir == "" {
		if s.temporary, err = scratch.Make("", "millrace-selections-"); err != nil {
			return nil, fmt.Errorf("selections: %w", err)
		}
		folder = s.temporary.Path
	}
	if s.parts, err = selections.Open(folder, keptSelections, log); err != nil {
		return nil, errors.Join(err, s.removeFolder())
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// removeFolder removes a temporary folder.
func (s *nodeSelections) removeFolder() error {
	if s.temporary == nil {
		return nil
	}
	return s.temporary.Close()
}

// close ends the work.
func (s *nodeSelections) close() error {
	s.stop()
	s.wg.Wait()
	return s.removeFolder()
}

// bindPass replaces the pipeline of a job by that of the pass over its filter's columns. The job must have its columns.
func bindPass(j *api.Job, wanted *apiv1.FilterPass) (*filterPass, error) {
	if len(wanted.GetFilter()) != len(dataset.Digest{}) || j.Columns == nil {
		return nil, fmt.Errorf("%w: filter_pass: a digest of %d bytes, want %d, and the columns of all partitions",
			errorcode.ErrRequest, len(wanted.GetFilter()), len(dataset.Digest{}))
	}
	whole, err := j.Pipeline.WithoutMissingVocabularies()
	if err != nil {
		return nil, err
	}
	resolved, err := resolve.Pipeline(whole, j.Columns)
	if err != nil {
		return nil, err
	}
	resolved.Malformed = program.Malformed(wanted.GetMalformed())
	switch {
	case resolved.Filter == nil || resolved.Filter.Spec == nil:
		return nil, fmt.Errorf("%w: filter_pass: the pipeline has no filter that reads columns", errorcode.ErrRequest)
	case resolved.FilterDigest() != dataset.Digest(wanted.GetFilter()):
		return nil, fmt.Errorf("%w: filter_pass: the filter is called %x, and is %s here; is this node as new as its "+
			"control plane?", problem.ErrSelection, wanted.GetFilter(), resolved.FilterDigest())
	}
	j.Pipeline = resolved.Filter.Spec
	return &filterPass{filter: resolved.FilterDigest(), condition: resolved.Filter.Condition, manifest: j.Manifest}, nil
}

// keep keeps a pass until forget is called for its job.
func (s *nodeSelections) keep(job dataset.Digest, p *filterPass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes[job] = p
}

// forget drops a job's pass.
func (s *nodeSelections) forget(job dataset.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.passes, job)
	for key := range s.failed {
		if key.pass == job {
			delete(s.failed, key)
		}
	}
}

// read returns a piece of a partition's part, or, while the rows are being tested, how many were. It begins the test
// if there is neither.
func (s *nodeSelections) read(
	ctx context.Context, job dataset.Digest, r *apiv1.SelectRowsRequest,
) (*apiv1.SelectRowsResponse, error) {
	s.mu.Lock()
	pass := s.passes[job]
	s.mu.Unlock()
	if pass == nil {
		return nil, fmt.Errorf("job %s: %w: it is not a pass of a filter", job, api.ErrUnknownJob)
	}
	index := pass.manifest.Find(r.GetPartition())
	if index < 0 {
		return nil, fmt.Errorf("%w: the pass has no partition %.80q", errorcode.ErrRequest, r.GetPartition())
	}
	wait := time.Duration(min(max(r.GetWaitSeconds(), 0), selectWait.Seconds()) * float64(time.Second))
	ended, err := s.begin(testedPartition{job, index}, pass, r.GetDrive())
	if err != nil {
		return nil, err
	}
	if ended != nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s.answer(testedPartition{job, index}, pass, r.GetOffset())
}

// answer returns what there is of a partition's part.
func (s *nodeSelections) answer(
	key testedPartition, pass *filterPass, offset int64,
) (*apiv1.SelectRowsResponse, error) {
	s.mu.Lock()
	t, err := s.testing[key], s.failed[key]
	delete(s.failed, key)
	if t != nil {
		defer s.mu.Unlock()
		return &apiv1.SelectRowsResponse{Tested: t.tested}, nil
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	entry := pass.manifest.Partitions[key.partition]
	piece, total, err := s.parts.ReadAt(entry, pass.filter, offset)
	if errors.Is(err, selections.ErrMissing) {
		return &apiv1.SelectRowsResponse{}, nil // it made room for others: the next call begins again
	}
	if err != nil {
		return nil, err
	}
	return &apiv1.SelectRowsResponse{Tested: entry.Rows, Bytes: total, Piece: piece}, nil
}

// begin begins to test the rows of a partition, unless their part is there. ended is closed at the end of the work; nil
// means that there is nothing to wait for.
func (s *nodeSelections) begin(key testedPartition, pass *filterPass, drive string) (ended chan struct{}, err error) {
	here, err := s.parts.Has(pass.manifest.Partitions[key.partition], pass.filter)
	if here || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.testing[key]; t != nil {
		t.asked = time.Now()
		return t.ended, nil
	}
	if s.failed[key] != nil {
		return nil, nil
	}
	if len(s.testing) >= maxTesting {
		return nil, fmt.Errorf("%w partitions: the rows of %d are being tested", errorcode.ErrTooMany, len(s.testing))
	}
	t := &rowTest{asked: time.Now(), ended: make(chan struct{})}
	s.testing[key] = t
	s.wg.Go(func() {
		err := s.test(key, t, pass, drive)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.testing, key)
		if err != nil && !errors.Is(err, errAbandoned) && s.passes[key.pass] == pass {
			s.failed[key] = err
		}
		close(t.ended)
	})
	return t.ended, nil
}

// errAbandoned ends a test that no call asks for any more.
var errAbandoned = errors.New("nobody asks for the selection any more")

// test tests the rows of a partition on a drive, and keeps the part. The open splits of the node make the pass's
// mini-batches, so that whatever ends a split of a job ends the test, too.
func (s *nodeSelections) test(key testedPartition, t *rowTest, pass *filterPass, drive string) (err error) {
	defer processor.Contain("the selection of rows", &err)
	m, err := selection.PartManifest(pass.manifest.Partitions[key.partition])
	if err != nil {
		return err
	}
	tested, err := selection.NewReducer(m, pass.filter, pass.condition)
	if err != nil {
		return err
	}
	tested.Progress = func(rows int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.tested += rows
	}
	plan, err := s.manager.Plan(key.pass, 0)
	if err != nil {
		return err
	}
	for split := range plan.All() {
		if split.Partition != key.partition {
			continue
		}
		if err := s.testSplit(key, t, drive, plan.Options().Batch, split, tested); err != nil {
			return fmt.Errorf("select rows of %s: %w", m.Partitions[0].Name, err)
		}
	}
	made, err := tested.Finish()
	if err != nil {
		return err
	}
	if err := s.parts.Put(made); err != nil {
		return err
	}
	s.log.Info("rows were selected", "partition", m.Partitions[0].Name, "drive", drive, "rows", m.Rows(), "passing",
		made.Passing())
	return nil
}

// testSplit tests the rows of one split of the pass.
func (s *nodeSelections) testSplit(key testedPartition, t *rowTest, drive string, batch int, split dataset.Split,
	tested *selection.Reducer) error {
	for i := range split.Fragments {
		s.mu.Lock()
		abandoned := time.Since(t.asked) > abandonedSelection
		s.mu.Unlock()
		if abandoned {
			return errAbandoned
		}
		at := split.Fragment(batch, i)
		response, err := s.splits.Get(s.ctx, splits.Request{
			Key:   splits.Key{Job: key.pass, Drive: drive, Place: split.Position},
			Split: split, Number: at.Number, Until: at.Number + testedAhead,
		}, func() {})
		if err != nil {
			return err
		}
		err = tested.AddRows(0, at.First, at.Rows, response.MiniBatch())
		s.splits.Done(response, true)
		if err != nil {
			return err
		}
	}
	return nil
}

// readSelection returns the file of a job's selection that a request names.
func readSelection(r *apiv1.JobSelection) (jobfiles.File, error) {
	f := jobfiles.File{Bytes: r.GetBytes(), Kind: jobfiles.Selection}
	if len(r.GetSha256()) != len(f.Digest) {
		return f, fmt.Errorf("%w: selection: a digest of %d bytes, want %d", errorcode.ErrRequest, len(r.GetSha256()),
			len(f.Digest))
	}
	copy(f.Digest[:], r.GetSha256())
	return f, nil
}

// SelectRows returns a piece of the part of a selection, or how far it is.
func (s *service) SelectRows(
	ctx context.Context, r *apiv1.SelectRowsRequest,
) (*apiv1.SelectRowsResponse, error) {
	job, err := readDigest(r.GetJob())
	if err != nil {
		return nil, err
	}
	if _, err := s.drives.Drive(r.GetDrive()); err != nil {
		return nil, err
	}
	return s.selections.read(ctx, job, r)
}
