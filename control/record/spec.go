package record

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// ErrSpec says that a job's specification can never be accepted.
var ErrSpec = errors.New("job")

// Bounds of a job.
const (
	MaxRanks = 1024
	MaxEpoch = 1 << 20
	// MaxAbandon is the longest that a job may wait for its ranks to call: a year.
	MaxAbandon = 365 * 24 * time.Hour
)

// Spec is a checked specification of a job.
type Spec struct {
	Job      *apiv1.JobSpec // with defaults filled in
	Pipeline *pipeline.Spec
	Plan     dataset.Options // without an epoch
	Resume   *dataset.Token
	Offload  Offload
}

// jobName matches names of jobs, which go into keys, metrics and paths.
var jobName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Check checks a specification and fills in defaults. sealed is false if the job resumes from a token that no control
// plane has sealed under the key. The error wraps ErrSpec, or describes the faults of the pipeline, line by
// line, or of the token.
func Check(spec *apiv1.JobSpec, key []byte) (_ *Spec, sealed bool, err error) {
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
	if spec.Placement == "" {
		spec.Placement = string(PlacementAuto)
	}
	switch {
	case !jobName.MatchString(spec.Name):
		return nil, false, fmt.Errorf("%w: name %q: want 1 to 63 of a-z 0-9 -", ErrSpec, spec.Name)
	case len(spec.Pipeline) == 0:
		return nil, false, fmt.Errorf("%w: there is no pipeline", ErrSpec)
	case spec.Epochs > MaxEpoch:
		return nil, false, fmt.Errorf("%w: %d epochs, at most %d", ErrSpec, spec.Epochs, MaxEpoch)
	case spec.Ranks > MaxRanks:
		return nil, false, fmt.Errorf("%w: %d ranks, at most %d", ErrSpec, spec.Ranks, MaxRanks)
	case spec.RankTail != "drop" && spec.RankTail != "keep":
		return nil, false, fmt.Errorf("%w: rank_tail %q: want drop or keep", ErrSpec, spec.RankTail)
	case !validPlacement(spec.Placement):
		return nil, false, fmt.Errorf("%w: placement %q: want %s", ErrSpec, spec.Placement, placementWords())
	case spec.Order != "fastest" && spec.Order != "deterministic":
		return nil, false, fmt.Errorf("%w: order %q: want fastest or deterministic", ErrSpec, spec.Order)
	case !(spec.Weight > 0) || spec.Weight > 1e6:
		return nil, false, fmt.Errorf("%w: weight %v: want more than 0, at most 1e6", ErrSpec, spec.Weight)
	case !(spec.TRowsPerSecond >= 0) || math.IsInf(spec.TRowsPerSecond, 0) || spec.MaxDrives < 0:
		return nil, false, fmt.Errorf("%w: T of %v rows/s, at most %d drives: want neither below 0", ErrSpec,
			spec.TRowsPerSecond, spec.MaxDrives)
	case spec.FollowOnce && !spec.Follow:
		return nil, false, fmt.Errorf("%w: follow_once without follow: set follow, too, for partitions that appear later",
			ErrSpec)
	case !(spec.AbandonAfterSeconds >= 0) || spec.AbandonAfterSeconds > MaxAbandon.Seconds() ||
		spec.AbandonAfterSeconds > 0 && spec.AbandonAfterSeconds < 1:
		return nil, false, fmt.Errorf("%w: abandon_after_seconds %v: want 1 to %.0f, or 0 for what the control plane "+
			"says", ErrSpec, spec.AbandonAfterSeconds, MaxAbandon.Seconds())
	}
	s := &Spec{Job: spec}
	if err := errors.Join(fleet.CheckPatterns(spec.Partitions), fleet.CheckPatterns(spec.Exclude)); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if s.Offload, err = ParseOffload(spec.Offload); err != nil {
		return nil, false, err
	}
	if p := Placement(spec.Placement); s.Offload.Shares && p != PlacementAuto {
		return nil, false, fmt.Errorf("%w: offload %q with placement %s: splits are shared out with placement %s, where "+
			"ranks' own CPUs and other workers may make them", ErrSpec, spec.Offload, p, PlacementAuto)
	}
	if s.Pipeline, err = pipeline.Parse(spec.Pipeline); err != nil {
		return nil, false, fmt.Errorf("%w: pipeline: %w", ErrSpec, err)
	}
	pinned, changed, err := s.Pipeline.PinZones()
	if err != nil {
		return nil, false, fmt.Errorf("%w: pipeline: %w", ErrSpec, err)
	}
	if changed { // what is stored must not depend on the rules of time zones of later leaders and of nodes
		s.Pipeline, spec.Pipeline = pinned, pinned.JSON()
		if _, err := pipeline.Parse(spec.Pipeline); err != nil {
			return nil, false, fmt.Errorf("%w: pipeline with its time zones written out: %w", ErrSpec, err)
		}
	}
	if s.Pipeline, err = bindVocabularies(s.Pipeline, spec.Vocabularies); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if s.Pipeline, err = bindModules(s.Pipeline, spec.Modules); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if s.Plan, err = apiv1.ReadPlan(spec.Plan); err == nil {
		err = s.Plan.CheckWindow()
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if s.Plan.Batch == 0 {
		s.Plan.Batch = s.Pipeline.Batch
	}
	spec.Plan = apiv1.WritePlan(whole(s.Plan))
	sealed = true
	if len(spec.Resume) > 0 {
		var t dataset.Token
		if t, sealed, err = UnwrapToken(key, spec.Resume); err != nil {
			return nil, false, fmt.Errorf("%w: resume: %w", ErrSpec, err)
		}
		if t.Epoch >= spec.Epochs {
			return nil, false, fmt.Errorf("%w: resume: the token is of epoch %d, counted from 0, and the job has %d",
				ErrSpec, t.Epoch, spec.Epochs)
		}
		s.Resume = &t
	}
	return s, sealed, nil
}

// whole fills in the defaults of dataset.NewPlan.
func whole(o dataset.Options) dataset.Options {
	if o.Batch == 0 {
		o.Batch = dataset.DefaultBatch
	}
	if o.SplitBatches == 0 {
		o.SplitBatches = dataset.DefaultSplitBatches
	}
	return o
}
