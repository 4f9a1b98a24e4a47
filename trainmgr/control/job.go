package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/fpga/program"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/control/autoscale"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/ledger"
)

// errSpec says that a job can never be as it was submitted.
var errSpec = errors.New("job")

// job is a job that the leader knows. All but the first block is guarded by leader.mu.
type job struct {
	storedSpec
	spec     *apiv1.JobSpec // with defaults filled in
	pipeline *pipeline.Spec
	plan     dataset.Options // without an epoch
	resume   *dataset.Token
	storing  sync.Mutex // held while the state is written; before leader.mu

	storedState
	generations []*generation // in the order of storedState.Generations
	ranks       []rank
	coming      *generation   // that is being prepared
	changed     chan struct{} // closed and replaced when the phase changes
	wake        chan struct{} // of the job's goroutine
	finished    bool          // every epoch there is is acknowledged
	since       time.Time     // when it was
	dirty       bool          // storedState differs from what is stored
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
	stalled float64   // seconds, of sessions that ended
	grants  []offered // that the rank has not named since
	asks    uint64    // Lease calls that waited for grants: the last one withdraws what it wanted
	revoked []uint64
	wake    chan struct{} // closed and replaced when grants or revoked came
	session ledger.Session
	adopted bool // this leader has been told what the session holds
	stays   bool // it will say when it is through
	guessed bool // stays is: an earlier leader that did not store it may have been told
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
	storedGeneration
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
		return nil, fmt.Errorf("%w: the pipeline does not fit the partitions: %w", errSpec, err)
	}
	resolved.Malformed = program.Malformed(data.Malformed)
	_, schema, err := pipeline.Lower(resolved)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	manifest, err := data.Manifest.Digest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	digest, err := dataset.JobDigest(manifest, resolved.Canonical(), j.plan)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	g := &generation{storedGeneration: storedGeneration{Number: number, First: first, Digest: digest}, data: data, resolved: resolved, schema: schema}
	for _, p := range data.Manifest.Partitions {
		g.words = append(g.words, fleet.Word(p.Name, p.Footer[:]))
	}
	return g, nil
}

// names of jobs go into keys, metrics and paths.
var jobName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// newJob checks a spec and fills defaults in. The error wraps errSpec, or says what is wrong with the pipeline, line by line, or with the
// token.
func newJob(stored storedSpec, spec *apiv1.JobSpec, key []byte) (*job, bool, error) {
	spec = proto.CloneOf(spec)
	if spec.Plan == nil {
		spec.Plan = &apiv1.PlanOptions{}
	}
	if spec.Epochs == 0 {
		spec.Epochs = 1
	}
	if spec.Ranks == 0 {
		spec.Ranks = 1
	}
	if spec.Weight == 0 {
		spec.Weight = 1
	}
	if spec.RankTail == "" {
		spec.RankTail = "drop"
	}
	if spec.Order == "" {
		spec.Order = "fastest"
	}
	switch {
	case !jobName.MatchString(spec.Name):
		return nil, false, fmt.Errorf("%w: name %q: want 1 to 63 of a-z 0-9 -", errSpec, spec.Name)
	case len(spec.Pipeline) == 0:
		return nil, false, fmt.Errorf("%w: there is no pipeline", errSpec)
	case spec.Epochs > MaxEpoch:
		return nil, false, fmt.Errorf("%w: %d epochs, at most %d", errSpec, spec.Epochs, MaxEpoch)
	case spec.Ranks > MaxRanks:
		return nil, false, fmt.Errorf("%w: %d ranks, at most %d", errSpec, spec.Ranks, MaxRanks)
	case spec.RankTail != "drop" && spec.RankTail != "keep":
		return nil, false, fmt.Errorf("%w: rank_tail %q: want drop or keep", errSpec, spec.RankTail)
	case spec.Order != "fastest" && spec.Order != "deterministic":
		return nil, false, fmt.Errorf("%w: order %q: want fastest or deterministic", errSpec, spec.Order)
	case !(spec.Weight > 0) || spec.Weight > 1e6:
		return nil, false, fmt.Errorf("%w: weight %v: want more than 0, at most 1e6", errSpec, spec.Weight)
	case !(spec.TRowsPerSecond >= 0) || math.IsInf(spec.TRowsPerSecond, 0) || spec.MaxDrives < 0:
		return nil, false, fmt.Errorf("%w: T of %v rows/s, at most %d drives: want neither below 0", errSpec, spec.TRowsPerSecond, spec.MaxDrives)
	}
	j := &job{storedSpec: stored, spec: spec, changed: make(chan struct{}), wake: make(chan struct{}, 1), had: map[string]struct{}{}, ranks: make([]rank, spec.Ranks)}
	for i := range j.ranks {
		j.ranks[i].wake = make(chan struct{})
	}
	var err error
	if err := errors.Join(fleet.CheckPatterns(spec.Partitions), fleet.CheckPatterns(spec.Exclude)); err != nil {
		return nil, false, fmt.Errorf("%w: %w", errSpec, err)
	}
	if j.pipeline, err = pipeline.Parse(spec.Pipeline); err != nil {
		return nil, false, fmt.Errorf("%w: pipeline: %w", errSpec, err)
	}
	if j.plan, err = planOptions(spec.Plan, j.pipeline.Batch); err != nil {
		return nil, false, fmt.Errorf("%w: %w", errSpec, err)
	}
	spec.Plan = wirePlan(whole(j.plan))
	sealed := true
	if len(spec.Resume) > 0 {
		var t dataset.Token
		if t, sealed, err = UnwrapToken(key, spec.Resume); err != nil {
			return nil, false, fmt.Errorf("%w: resume: %w", errSpec, err)
		}
		if t.Epoch >= spec.Epochs {
			return nil, false, fmt.Errorf("%w: resume: the token is of epoch %d, counted from 0, and the job has %d", errSpec, t.Epoch, spec.Epochs)
		}
		j.resume = &t
	}
	return j, sealed, nil
}

// planOptions reads a plan's options.
func planOptions(p *apiv1.PlanOptions, batch int) (dataset.Options, error) {
	o := dataset.Options{Batch: batch, Seed: p.Seed}
	bound := func(v, most int64, what string) (int, error) {
		if v < 0 || v > most {
			return 0, fmt.Errorf("plan: %s %d, want 0 to %d", what, v, most)
		}
		return int(v), nil
	}
	var err error
	if p.Batch != 0 {
		if o.Batch, err = bound(p.Batch, dataset.MaxBatch, "batch"); err != nil {
			return o, err
		}
	}
	if o.SplitBatches, err = bound(p.SplitBatches, dataset.MaxSplitBatches, "split_batches"); err != nil {
		return o, err
	}
	if o.Window, err = bound(p.Window, dataset.MaxSplitBatches, "window"); err != nil {
		return o, err
	}
	if p.Tail != "" {
		if err := o.Tail.UnmarshalText([]byte(p.Tail)); err != nil {
			return o, fmt.Errorf("plan: tail: %w", err)
		}
	}
	if p.Shuffle != "" {
		if err := o.Shuffle.UnmarshalText([]byte(p.Shuffle)); err != nil {
			return o, fmt.Errorf("plan: shuffle: %w", err)
		}
	}
	return o, nil
}

// whole fills in what dataset.NewPlan would.
func whole(o dataset.Options) dataset.Options {
	if o.Batch == 0 {
		o.Batch = dataset.DefaultBatch
	}
	if o.SplitBatches == 0 {
		o.SplitBatches = dataset.DefaultSplitBatches
	}
	return o
}

// wirePlan is a plan's options as nodes and launchers are told.
func wirePlan(o dataset.Options) *apiv1.PlanOptions {
	return &apiv1.PlanOptions{Batch: int64(o.Batch), Tail: o.Tail.String(), Shuffle: o.Shuffle.String(), Seed: o.Seed, SplitBatches: int64(o.SplitBatches), Window: int64(o.Window)}
}

// ledgerJob is the job in the ledger's words.
func (j *job) ledgerJob() ledger.Job {
	v := ledger.Job{ID: j.ID, Ranks: int(j.spec.Ranks), Weight: j.spec.Weight, Drives: int(j.spec.MaxDrives)}
	if j.spec.RankTail == "keep" {
		v.Tail = ledger.KeepTail
	}
	if j.spec.Order == "deterministic" {
		v.Order = ledger.Deterministic
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
