package control

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/program"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/control/autoscale"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/lifecycle"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// job holds the leader's data of a job beside the job's life. The first block never changes; the rest is guarded by
// leader.mu.
type job struct {
	record.Submission
	spec     *apiv1.JobSpec // with defaults filled in
	pipeline *pipeline.Spec
	plan     dataset.Options // without an epoch
	resume   *dataset.Token
	offload  record.Offload
	makers   ledger.Makers // by the placement
	storing  sync.Mutex    // held while the state is written; locked before leader.mu

	*lifecycle.Job                     // nil until the job is stored
	editions       map[int]*edition    // by number: those of Job, and the next one while it is being prepared
	launchers      []launcher          // of the ranks
	changed        chan struct{}       // closed and replaced when the phase changes
	wake           chan struct{}       // of the job's goroutine
	formerly       map[string]struct{} // partitions of editions that all ranks have left
	autoscaling
}

// launcher holds the leader's data of a rank's launcher beside the life of its job.
type launcher struct {
	progress       *apiv1.RankReport     // the last; nil: the launcher has sent none
	stalledSeconds float64               // of sessions that ended
	ticketsIssued  map[uint64]time.Time  // by lease: when the last ticket for it was
	wake           chan struct{}         // closed and replaced when something has come for the rank
	profile        *apiv1.OffloadMetrics // that the launcher reported last; nil: none
	sharing        *rankSharing          // nil: no policy shares the rank's splits out
}

// autoscaling holds the inputs of a job's autoscaler, and its decisions.
type autoscaling struct {
	scaler        *autoscale.Controller
	rows          float64              // acknowledged since this leader began, by all ranks
	decisions     [][]byte             // the last ones
	allowedDrives int                  // at once, as the ledger knows it; 0: no bound
	measuring     bool                 // P of a drive that has joined
	measuredOn    int                  // partition on which a worker of any reach was measured last
	unmeasured    map[string]time.Time // drives whose P could not be measured, and when

	allowedWorkers int  // of any reach, as the ledger knows it
	wantedWorkers  int  // of any reach, by the autoscaler, whether or not there are as many
	leastWorkers   int  // of any reach, without which the job cannot go on
	needsWorkers   bool // workers of any reach are prepared for the job
}

// edition is a set of partitions that a job goes over, for as many epochs as it asks for.
type edition struct {
	record.Edition
	data           *fleet.Selection
	resolved       *pipeline.Resolved
	schema         *tensor.Schema
	words          []string          // of its partitions, see fleet.Word
	holdersFound   [][]fleet.DriveID // see holders
	holdersVersion uint64            // of the fleet, when they were found
	onNodes        bool              // nodes that hold something have been asked to prepare it
}

// newEdition makes an edition of the selected partitions.
func newEdition(j *job, data *fleet.Selection, number int, first uint64) (*edition, error) {
	resolved, err := j.pipeline.Resolve(data.Columns)
	if err != nil {
		return nil, fmt.Errorf("%w: the pipeline does not fit the partitions: %w", record.ErrSpec, err)
	}
	resolved.Malformed = program.Malformed(data.Malformed)
	_, schema, err := pipeline.Lower(resolved)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	manifest, err := data.Manifest.Digest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	digest, err := dataset.JobDigest(manifest, resolved.Canonical(), j.plan)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", record.ErrSpec, err)
	}
	g := &edition{
		Edition: record.Edition{Number: number, First: first, Digest: digest},
		data:    data, resolved: resolved, schema: schema,
	}
	for _, p := range data.Manifest.Partitions {
		g.words = append(g.words, fleet.Word(p.Name, p.Footer[:]))
	}
	return g, nil
}

// newJob makes a job of a submission. The error wraps record.ErrSpec, or describes the faults of the pipeline, line
// by line, or of the token; sealed has the meaning that it has for record.Check.
func newJob(submission record.Submission, spec *apiv1.JobSpec, key []byte) (_ *job, sealed bool, err error) {
	s, sealed, err := record.Check(spec, key)
	if err != nil {
		return nil, false, err
	}
	j := &job{
		Submission: submission, spec: s.Job, makers: makersOf(record.Placement(s.Job.Placement)),
		pipeline: s.Pipeline, plan: s.Plan, resume: s.Resume, offload: s.Offload,
		editions: map[int]*edition{}, launchers: make([]launcher, s.Job.Ranks), formerly: map[string]struct{}{},
		changed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	for i := range j.launchers {
		j.launchers[i].wake = make(chan struct{})
	}
	return j, sealed, nil
}

// terms returns the values of the job's specification that the lifecycle needs.
func (j *job) terms() lifecycle.Terms {
	t := lifecycle.Terms{
		ID: j.Submission.ID, Name: j.spec.Name, Submitted: j.Submission.Submitted, Ranks: int(j.spec.Ranks),
		Epochs: j.spec.Epochs, Follow: j.spec.Follow,
		MaxUnattended: time.Duration(j.spec.AbandonAfterSeconds * float64(time.Second)),
	}
	if j.resume != nil {
		t.FirstEpoch = j.resume.Epoch
	}
	return t
}

// ledgerJob is the job in the ledger's words.
func (j *job) ledgerJob() ledger.Job {
	v := ledger.Job{ID: j.Submission.ID, Ranks: int(j.spec.Ranks), Weight: j.spec.Weight, Drives: int(j.spec.MaxDrives),
		Makers: j.makers}
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

// latest is the last edition that was taken; nil: the job has ended, and its editions are not kept.
func (j *job) latest() *edition {
	list := j.Editions()
	if len(list) == 0 {
		return nil
	}
	return j.editions[list[len(list)-1].Number]
}

// poke wakes the job's goroutine.
func (j *job) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// notify wakes the Lease calls that wait for a rank.
func (j *job) notify(rank uint32) {
	c := &j.launchers[rank]
	close(c.wake)
	c.wake = make(chan struct{})
}

// tensorSchema is the JSON of the tensors' schema.
func (g *edition) tensorSchema() ([]byte, error) { return json.Marshal(g.schema) }
