package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
)

// Bounds of the making of a selection.
const (
	partsPerDrive = 2   // partitions whose rows one drive tests at once
	partsAtOnce   = 128 // partitions whose rows are tested at once
)

// passPlan is how a pass over the columns of a filter is cut, whatever the job's plan: as passes.PlanOptions says.
var passPlan = dataset.Options{Batch: pipeline.DefaultBatch, Shuffle: dataset.ShuffleNone, SplitBatches: 64}

// selectionProgress is how far the selection of an edition is. Its methods may be used from any goroutine.
type selectionProgress struct {
	mu struct {
		sync.Mutex
		testedRows map[int]int64 // by partition, also those that are done
		passing    int64         // rows of the partitions that are done
		done       uint32        // partitions
	}
}

// counts returns how many rows were tested, how many rows of the partitions that are done pass, and the number of these
// partitions.
func (p *selectionProgress) counts() (tested, passing int64, done uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rows := range p.mu.testedRows {
		tested += rows
	}
	return tested, p.mu.passing, p.mu.done
}

// note records how many rows of a partition were tested.
func (p *selectionProgress) note(partition int, rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.testedRows[partition] = rows
}

// noteDone records that the part of a partition is there.
func (p *selectionProgress) noteDone(partition int, rows, passing int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.testedRows[partition] = rows
	p.mu.passing += passing
	p.mu.done++
}

// forget records that no row of a partition was tested: its part could not be made.
func (p *selectionProgress) forget(partition int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.testedRows, partition)
}

// rowSelector makes the selection of an edition. Nodes and workers test the rows of its partitions, each partition in
// one place; rowSelector fetches the parts, and joins them. Parts that an earlier leader on this member fetched are
// used again, and nodes keep those that they made.
type rowSelector struct {
	c      *conductor
	g      *edition
	shown  bool // the job's status shows the progress
	filter dataset.Digest
	folder string
	pass   *edition // nil: rows are tested by their numbers alone

	progress  selectionProgress
	pending   []int                           // partitions that nobody tests now
	running   map[fleet.DriveID]int           // partitions that are tested there
	refused   map[int]map[fleet.DriveID]error // by partition: who cannot make its part, and why
	rests     map[fleet.DriveID]time.Time     // until when a drive is not asked
	answers   chan partAnswer
	lastError error // lastError is that of a call that may succeed later.
}

// partAnswer ends the test of a partition at a drive.
type partAnswer struct {
	partition int
	at        fleet.DriveID
	passing   int64
	err       error
}

// partPath returns the file of a partition's part.
func (r *rowSelector) partPath(partition int) string {
	return filepath.Join(r.folder, fmt.Sprintf("%d.selection", partition))
}

// run makes the selection.
func (r *rowSelector) run() (*selection.Joined, error) {
	r.filter, r.folder = r.g.resolved.FilterDigest(), r.c.s.selectionFolder(r.c.job, r.g)
	r.progress.mu.testedRows = map[int]int64{}
	r.running, r.rests = map[fleet.DriveID]int{}, map[fleet.DriveID]time.Time{}
	r.refused, r.answers = map[int]map[fleet.DriveID]error{}, make(chan partAnswer)
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return nil, err
	}
	if r.shown {
		r.c.mu.Lock()
		r.c.job.selecting = &r.progress
		r.c.mu.Unlock()
	}
	r.findParts()
	if err := r.testRows(); err != nil {
		return nil, err
	}
	joined, err := r.join()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(r.folder); err != nil {
		r.c.logger.Warn("remove the parts of a selection", "file", r.folder, "error", err)
	}
	return joined, nil
}

// findParts finds the parts that an earlier leader fetched.
func (r *rowSelector) findParts() {
	for i, p := range r.g.data.Manifest.Partitions {
		part, err := selection.Load(r.partPath(i))
		if err == nil {
			err = selection.CheckPart(part, p, r.filter)
		}
		if err != nil {
			r.pending = append(r.pending, i)
			continue
		}
		r.progress.noteDone(i, p.Rows, part.Passing())
	}
}

// testRows has the rows of the pending partitions tested.
func (r *rowSelector) testRows() error {
	if len(r.pending) == 0 {
		return nil
	}
	if r.g.resolved.Filter.Spec == nil {
		return r.testNumbers()
	}
	if err := r.beginPass(); err != nil {
		return err
	}
	defer r.endPass()
	if err := r.c.retryWhileBusy(func() error { return r.c.prepareOnce(r.pass) }); err != nil {
		return err
	}
	return r.testParts()
}

// testNumbers tests the rows of the pending partitions by their partitions' names and their numbers. It reads nothing,
// so that no node is asked.
func (r *rowSelector) testNumbers() error {
	for _, i := range r.pending {
		p := r.g.data.Manifest.Partitions[i]
		m, err := selection.PartManifest(p)
		if err != nil {
			return err
		}
		tested, err := selection.NewReducer(m, r.filter, r.g.resolved.Filter.Condition)
		if err != nil {
			return err
		}
		if err := tested.AddNumbers(r.c.ctx); err != nil {
			return err
		}
		part, err := tested.Finish()
		if err != nil {
			return err
		}
		if err := part.Write(r.partPath(i)); err != nil {
			return err
		}
		r.progress.noteDone(i, p.Rows, part.Passing())
	}
	return nil
}

// beginPass makes the pass over the columns of the filter: nodes are prepared for it as for an edition.
func (r *rowSelector) beginPass() error {
	if err := dataset.CheckSplits(r.g.data.Manifest, nil, passPlan, r.c.o.MaxSplits); err != nil {
		return fmt.Errorf("%w: a pass over the filter's columns: %w", record.ErrSpec, err)
	}
	resolved, err := resolve.Pipeline(r.g.resolved.Filter.Spec, r.g.data.Columns)
	if err != nil {
		return err
	}
	resolved.Malformed = r.g.resolved.Malformed
	manifest, err := r.g.data.Manifest.Digest()
	if err != nil {
		return err
	}
	digest, err := dataset.JobDigest(manifest, resolved.Canonical(), passPlan)
	if err != nil {
		return err
	}
	r.pass = &edition{
		Edition: &machine.Edition{
			Edition:  record.Edition{Number: r.g.Number, Digest: digest},
			Manifest: r.g.Manifest, Words: r.g.Words,
		},
		data: r.g.data, resolved: resolved,
		pass: &apiv1.FilterPass{Filter: r.filter[:], Malformed: uint32(r.g.resolved.Malformed)},
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.job.passes = append(r.c.job.passes, r.pass)
	return nil
}

// endPass makes the nodes forget the pass.
func (r *rowSelector) endPass() {
	r.c.mu.Lock()
	r.c.job.passes = slices.DeleteFunc(r.c.job.passes, func(g *edition) bool { return g == r.pass })
	r.c.mu.Unlock()
	if r.c.ctx.Err() == nil {
		r.c.finishEdition(r.c.ctx, r.pass)
	}
}

// testParts hands the pending partitions to drives until the parts of all are there.
func (r *rowSelector) testParts() (err error) {
	inFlight := 0
	defer func() { // calls end with the leader's context, or by themselves
		for ; inFlight > 0; inFlight-- {
			<-r.answers
		}
	}()
	lastNews := time.Now()
	for len(r.pending) > 0 || inFlight > 0 {
		if r.ended() {
			return errors.New("the job has ended")
		}
		begun, err := r.beginParts(partsAtOnce - inFlight)
		if inFlight += begun; err != nil {
			return err
		}
		if inFlight > 0 {
			lastNews = time.Now()
		}
		select {
		case a := <-r.answers:
			inFlight--
			if err := r.take(a); err != nil {
				return err
			}
		case <-time.After(r.c.o.Beat): // a drive may have joined
		case <-r.c.ctx.Done():
			return r.c.ctx.Err()
		}
		if time.Since(lastNews) > awayTime*r.c.o.DeadAfter {
			return r.stuckError()
		}
	}
	return nil
}

// ended reports whether the job has ended, or the leader.
func (r *rowSelector) ended() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.c.ctx.Err() != nil || !r.c.job.OnNodes()
}

// stuckError is the error of partitions that nobody can test.
func (r *rowSelector) stuckError() error {
	err := fmt.Errorf("partition %s: no drive or worker that is prepared can test its rows",
		r.g.data.Manifest.Partitions[r.pending[0]].Name)
	if r.lastError != nil {
		err = fmt.Errorf("%w: %w", err, r.lastError)
	}
	return err
}

// testers are the drives and workers that may test rows now.
type testers struct {
	holders [][]fleet.DriveID      // by partition: those that may make splits of the job
	workers []fleet.DriveID        // the workers of any reach that may
	able    map[fleet.DriveID]bool // The nodes of these are prepared for the pass.
}

// findTesters returns the drives and workers that may test rows now.
func (r *rowSelector) findTesters() testers {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	t := testers{holders: c.mu.fleet.Holders(r.g.data.Manifest), able: map[fleet.DriveID]bool{}}
	for _, w := range c.job.workersOf(c.mu.fleet) {
		t.workers = append(t.workers, w.ID)
	}
	for i, holders := range t.holders {
		t.holders[i] = slices.DeleteFunc(holders, func(at fleet.DriveID) bool {
			return !c.job.employs(at, c.mu.fleet.Drive(at))
		})
	}
	for _, at := range slices.Concat(slices.Concat(t.holders...), t.workers) {
		t.able[at] = c.mu.upkeep.IsPrepared(at.Node, r.pass.Digest)
	}
	return t
}

// beginParts hands pending partitions to drives that have room, at most the given number.
func (r *rowSelector) beginParts(most int) (begun int, err error) {
	t, now := r.findTesters(), time.Now()
	var left []int
	for n, i := range r.pending {
		if begun == most {
			left = append(left, r.pending[n:]...)
			break
		}
		at, ok, err := r.chooseTester(i, &t, now)
		if err != nil {
			return begun, err
		}
		if !ok {
			left = append(left, i)
			continue
		}
		begun++
		r.running[at]++
		r.c.wg.Go(func() {
			passing, err := r.fetchPart(i, at)
			r.answers <- partAnswer{i, at, passing, err}
		})
	}
	r.pending = left
	return begun, nil
}

// chooseTester chooses the drive that tests the rows of a partition: a holder with room, or a worker of any reach if
// no holder is there. ok is false if none has room now. The error is that of the last drive, if every drive that could
// make the part has failed for good.
func (r *rowSelector) chooseTester(partition int, t *testers, now time.Time) (at fleet.DriveID, ok bool, err error) {
	candidates := t.holders[partition]
	if len(candidates) == 0 {
		candidates = t.workers
	}
	least, failed := partsPerDrive, 0
	var lasting error
	for _, h := range candidates {
		if why := r.refused[partition][h]; why != nil {
			failed, lasting = failed+1, why
			continue
		}
		if t.able[h] && !now.Before(r.rests[h]) && r.running[h] < least {
			at, least, ok = h, r.running[h], true
		}
	}
	if len(candidates) > 0 && failed == len(candidates) {
		return at, false, lasting
	}
	return at, ok, nil
}

// take takes the answer of a drive.
func (r *rowSelector) take(a partAnswer) error {
	p := r.g.data.Manifest.Partitions[a.partition]
	r.running[a.at]--
	if a.err == nil {
		delete(r.refused, a.partition)
		r.progress.noteDone(a.partition, p.Rows, a.passing)
		return nil
	}
	if r.c.ctx.Err() != nil {
		return r.c.ctx.Err()
	}
	err := fmt.Errorf("partition %s: node %s: drive %s: %w", p.Name, a.at.Node, a.at.Drive, a.err)
	r.c.logger.Warn("select rows", "job", r.c.job.ID, "partition", p.Name, "node", a.at.Node, "drive", a.at.Drive, "error",
		a.err)
	r.pending = append(r.pending, a.partition)
	r.progress.forget(a.partition)
	if mayTestLater(a.err) {
		r.lastError = err
		r.rests[a.at] = time.Now().Add(min(retryNode, 10*r.c.o.Beat))
		return nil
	}
	if r.refused[a.partition] == nil {
		r.refused[a.partition] = map[fleet.DriveID]error{}
	}
	r.refused[a.partition][a.at] = err
	return nil
}

// mayTestLater reports whether a drive whose call failed may test the rows later.
func mayTestLater(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeResourceExhausted, connect.CodeAborted, connect.CodeNotFound,
		connect.CodeCanceled, connect.CodeDeadlineExceeded:
		return true
	}
	return false
}
