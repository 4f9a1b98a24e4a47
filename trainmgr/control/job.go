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
	"github.com/millrace/millrace/trainmgr/control/record"
)

// job is a job that the leader knows. All but the first block is guarded by leader.mu.
type job struct {
	record.Submission
	spec     *apiv1.JobSpec // with defaults filled in
	pipeline *pipeline.Spec
	plan     dataset.Options // without an epoch
	resume   *dataset.Token
	storing  sync.Mutex // held while the state is written; before leader.mu

	record.State
	generations []*generation // in the order of State.Generations
	ranks       []rank
	coming      *generation   // that is being prepared
	changed     chan struct{} // closed and replaced when the phase changes
	wake        chan struct{} // of the job's goroutine
	finished    bool          // every epoch there is is acknowledged
	since       time.Time     // when it was
	dirty       bool          // State differs from what is stored
	urgent      bool          // and must not wait for a second to have gone by
	stored      time.Time     // when it was last
	scaler      *autoscale.Controller
	rows        float64              // acknowledged since this leader began, by all ranks
	decisions   [][]byte             // the autoscaler's last
	had         map[string]struct{}  // partitions of generations that are gone
	scaled      int                  // drives allowed at once, as the ledger was told; 0: no bound
	measures    bool                 // P of a drive that has joined
	unmeasured  map[string]time.Time // drives whose P could not be measured, and when
}

// rank is what the leader knows of a rank beside the ledger.
type rank struct {
	report  *apiv1.RankReport
	stalled float64              // seconds, of sessions that ended
	grants  []offered            // that the rank has not named since
	tickets map[uint64]time.Time // leases, and when the last ticket for each was issued
	asks    uint64               // Lease calls that waited for grants: the last one withdraws what it wanted
	revoked []uint64
	wake    chan struct{} // closed and replaced when grants or revoked came
	session ledger.Session
	adopted bool // this leader has been told what the session holds
	stays   bool // it will say when it is through
	guessed bool // stays is: an earlier leader that did not store it may have been told
	run     run  // that attached last
}

// hears notes whether a rank will say when it is through; true when that is news, which is to be stored.
func (j *job) hears(r *rank, stays bool) bool {
	news := r.stays != stays || r.guessed
	r.stays, r.guessed = stays, false
	if news {
		j.dirty = true
	}
	return news
}

// staying lists who stays, a character a rank, as it is stored.
func (j *job) staying() string {
	b := make([]byte, len(j.ranks))
	for i, r := range j.ranks {
		switch {
		case r.guessed:
			b[i] = '?'
		case r.stays:
			b[i] = '1'
		default:
			b[i] = '0'
		}
	}
	return string(b)
}

// restoreStays is staying's inverse. What no leader has stored is guessed.
func (j *job) restoreStays() {
	for i := range j.ranks {
		r := &j.ranks[i]
		r.stays, r.guessed = true, true
		if i < len(j.Stays) && j.Stays[i] != '?' {
			r.stays, r.guessed = j.Stays[i] == '1', false
		}
	}
}

// offered is a grant. It is said again, to every call, until the rank names it among those it holds: an answer may be lost on its way, or
// reach somebody who has stopped listening.
type offered struct {
	ledger.Grant
	said bool
}

// generation is a set of partitions that a job goes over, for as many epochs as it asks for.
type generation struct {
	record.Generation
	data     *fleet.Selection
	resolved *pipeline.Resolved
	schema   *tensor.Schema
	words    []string        // of its partitions, see fleet.Word
	held     [][]fleet.Place // see holders
	at       uint64
	prepared bool // nodes that hold something have been asked to prepare it
}

// newGeneration makes a generation of what was selected.
func newGeneration(j *job, data *fleet.Selection, number int, first uint64) (*generation, error) {
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
	g := &generation{Generation: record.Generation{Number: number, First: first, Digest: digest}, data: data, resolved: resolved, schema: schema}
	for _, p := range data.Manifest.Partitions {
		g.words = append(g.words, fleet.Word(p.Name, p.Footer[:]))
	}
	return g, nil
}

// newJob makes a job of a submission. The error wraps record.ErrSpec, or says what is wrong with the pipeline, line by line, or with the
// token; sealed is as record.Check has it.
func newJob(stored record.Submission, spec *apiv1.JobSpec, key []byte) (_ *job, sealed bool, err error) {
	s, sealed, err := record.Check(spec, key)
	if err != nil {
		return nil, false, err
	}
	j := &job{
		Submission: stored, spec: s.Job, pipeline: s.Pipeline, plan: s.Plan, resume: s.Resume,
		changed: make(chan struct{}), wake: make(chan struct{}, 1), had: map[string]struct{}{}, ranks: make([]rank, s.Job.Ranks),
	}
	for i := range j.ranks {
		j.ranks[i].wake = make(chan struct{})
	}
	return j, sealed, nil
}

// ledgerJob is the job in the ledger's words.
func (j *job) ledgerJob() ledger.Job {
	v := ledger.Job{ID: j.ID, Ranks: int(j.spec.Ranks), Weight: j.spec.Weight, Drives: int(j.spec.MaxDrives)}
	if j.spec.RankTail == "keep" {
		v.Tail = ledger.KeepTail
	}
	if j.spec.Order == "deterministic" {
		v.Order = dataset.Deterministic
	}
	return v
}

// generationOf returns the generation that an epoch is of, nil if there is none (any more, or yet).
func (j *job) generationOf(epoch uint64) *generation {
	for _, g := range j.generations {
		if epoch >= g.First && epoch < g.First+j.spec.Epochs {
			return g
		}
	}
	return nil
}

// latest is the last generation that was taken; nil before the first.
func (j *job) latest() *generation {
	if len(j.generations) == 0 {
		return nil
	}
	return j.generations[len(j.generations)-1]
}

// end is the epoch at which everything that is known is delivered.
func (j *job) end() uint64 {
	if g := j.latest(); g != nil {
		return g.First + j.spec.Epochs
	}
	return 0
}

// first is the epoch in which a job begins.
func (j *job) first() uint64 {
	if j.resume != nil {
		return j.resume.Epoch
	}
	return 0
}

// poke wakes the job's goroutine.
func (j *job) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// tensorSchema is the JSON of the tensors' schema.
func (g *generation) tensorSchema() ([]byte, error) { return json.Marshal(g.schema) }
