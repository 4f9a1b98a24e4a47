package control

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/steering"
	"github.com/millrace/millrace/fpga/program"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

// job holds the leader's data of a job beside the job's life. The first block never changes; leader.mu guards the
// rest.
type job struct {
	record.Submission
	spec     *apiv1.JobSpec // with defaults filled in
	pipeline *pipeline.Spec
	storing  sync.Mutex // held while the state is written; locked before leader.mu

	*machine.Job                     // Its life is nil until the job is stored.
	editions     editionsByNumber    // the editions of Job, and the next one while it is being prepared
	launchers    []launcher          // Each rank has a launcher here.
	changed      wait.Broadcast      // It wakes the calls that watch the job when the phase changes.
	wake         chan struct{}       // wake wakes the job's goroutine.
	formerly     map[string]struct{} // partitions of editions that all ranks have left
	selecting    *selectionProgress  // selecting is that of the edition that is being prepared; nil while none is made.
	passes       []*edition          // over the columns of filters, for which nodes are prepared
	decisions    [][]byte            // the last ones of the autoscaler
	steering     *steering.Job       // Its Terms never change; leader.mu guards the rest.
	short        bool                // P of a drive is that of its first mini-batches: the job is short
	measuredOn   int                 // partition on which a worker of any reach was measured last
	needsWorkers bool                // workers of any reach are prepared for the job
}

// launcher holds the leader's data of a rank's launcher beside the life and the steering of its job.
type launcher struct {
	ticketsIssued map[uint64]time.Time // by lease: when its last ticket was issued
}

// edition is a set of partitions of a job. The job goes over the set in as many epochs as its specification asks
// for, or with follow_once over a later set in one.
type edition struct {
	*machine.Edition
	data     *fleet.Dataset
	resolved *resolve.Resolved
	schema   *tensor.Schema
	holders  editionHolders    // see holdersIn
	onNodes  bool              // nodes that hold partitions of the edition have been asked to prepare it
	pass     *apiv1.FilterPass // the edition is a pass over the columns of a filter; nil: it is not
}

// editionHolders are the drives that hold the partitions of an edition, at a version of the fleet.
type editionHolders struct {
	version     uint64
	byPartition [][]fleet.DriveID // nil: the fleet was not searched yet
	drives      []fleet.DriveID   // each drive of byPartition once
}

// holdersIn returns the drives that hold the edition's partitions now. It searches the partitions of all drives only
// when a node has reported a change, not every second.
func (g *edition) holdersIn(f *fleet.Fleet) *editionHolders {
	h := &g.holders
	if h.byPartition != nil && h.version == f.Version() {
		return h
	}
	*h = editionHolders{version: f.Version(), byPartition: f.Holders(g.data.Manifest)}
	seen := map[fleet.DriveID]bool{}
	for _, holders := range h.byPartition {
		for _, at := range holders {
			if !seen[at] {
				seen[at] = true
				h.drives = append(h.drives, at)
			}
		}
	}
	return h
}

// editionsByNumber holds the editions of a job.
type editionsByNumber map[int]*edition

// Edition implements machine.Editions.
func (e editionsByNumber) Edition(number int) *machine.Edition {
	if g := e[number]; g != nil {
		return g.Edition
	}
	return nil
}

// newEdition makes an edition of the selected partitions. If the pipeline has a filter, the edition gets its digest
// with its selection.
func newEdition(j *job, data *fleet.Dataset, number int, first uint64) (*edition, error) {
	resolved, err := resolve.Pipeline(j.pipeline, data.Columns)
	if err == nil {
		err = resolved.CheckPartitions(data.Manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the pipeline does not fit the partitions: %w", record.ErrSpec, err)
	}
	resolved.Malformed = program.Malformed(data.Malformed)
	lowered, err := lowering.LowerBeforeSelection(resolved)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	g := &edition{
		Edition: &machine.Edition{
			Edition: record.Edition{Number: number, First: first}, Manifest: data.Manifest,
		},
		data: data, resolved: resolved, schema: lowered.Schema,
	}
	if !g.filters() {
		if g.Digest, err = g.digestWith(nil, j.Plan); err != nil {
			return nil, fmt.Errorf("%w: %w", record.ErrSpec, err)
		}
	}
	for _, p := range data.Manifest.Partitions {
		g.Words = append(g.Words, fleet.Word(p.Name, p.Content[:]))
	}
	return g, nil
}

// newJob makes a job from a submission. The error wraps record.ErrSpec, or describes the faults of the pipeline,
// line by line, or of the token. sealed has the same meaning as for record.Check.
func newJob(submission record.Submission, spec *apiv1.JobSpec, key []byte) (_ *job, sealed bool, err error) {
	s, sealed, err := record.Check(spec, key)
	if err != nil {
		return nil, false, err
	}
	j := &job{
		Submission: submission, spec: s.Job, pipeline: s.Pipeline,
		Job:      &machine.Job{Plan: s.Plan, Resume: s.Resume},
		editions: editionsByNumber{}, launchers: make([]launcher, s.Job.Ranks), formerly: map[string]struct{}{},
		wake: make(chan struct{}, 1),
		steering: steering.New(steering.Terms{ID: submission.ID, Spec: s.Job,
			Makers: makersOf(record.Placement(s.Job.Placement)), Offload: s.Offload, BatchRows: s.Plan.Batch}),
	}
	j.LifeTerms, j.LedgerTerms, j.Data = j.terms(), j.ledgerJob(), j.editions
	if j.steering.Offload.Fixed {
		j.Shares = &j.steering.Offload.Ratio
	}
	return j, sealed, nil
}

// terms returns the values of the job's specification that the lifecycle needs.
func (j *job) terms() lifecycle.Terms {
	t := lifecycle.Terms{
		ID: j.Submission.ID, Name: j.spec.Name, Submitted: j.Submission.Submitted, Ranks: int(j.spec.Ranks),
		Epochs: j.spec.Epochs, Follow: j.spec.Follow, FollowOnce: j.spec.FollowOnce,
		MaxUnattended: time.Duration(j.spec.AbandonAfterSeconds * float64(time.Second)),
	}
	if j.Resume != nil {
		t.FirstEpoch = j.Resume.Epoch
	}
	return t
}

// ledgerJob returns the job as the ledger describes jobs.
func (j *job) ledgerJob() ledger.Job {
	v := ledger.Job{ID: j.Submission.ID, Ranks: int(j.spec.Ranks), Weight: j.spec.Weight, Drives: int(j.spec.MaxDrives),
		Makers: j.steering.Makers}
	if j.spec.RankTail == "keep" {
		v.Tail = ledger.KeepTail
	}
	if j.spec.Order == "deterministic" {
		v.Order = dataset.Deterministic
	}
	return v
}

// editionOf returns the edition of an epoch, or nil if the edition is no longer kept or not known yet.
func (j *job) editionOf(epoch uint64) *edition {
	if g, ok := j.EditionOf(epoch); ok {
		return j.editions[g.Number]
	}
	return nil
}

// latest returns the last edition that the job has begun. It returns nil if the job has ended and its editions are
// not kept.
func (j *job) latest() *edition {
	list := j.Editions()
	if len(list) == 0 {
		return nil
	}
	return j.editions[list[len(list)-1].Number]
}

// epochRows returns the rows of an epoch of the last edition; 0: not known.
func (j *job) epochRows() (rows float64) {
	g := j.latest()
	if g == nil || g.needsSelection() {
		return 0
	}
	if g.Passing == nil {
		return float64(g.data.Manifest.Rows())
	}
	for _, passing := range g.Passing {
		rows += float64(passing)
	}
	return rows
}

// poke wakes the job's goroutine.
func (j *job) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// tensorSchema returns the JSON of the tensors' schema.
func (g *edition) tensorSchema() ([]byte, error) { return json.Marshal(g.schema) }
