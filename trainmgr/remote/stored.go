package remote

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
	"github.com/millrace/millrace/trainmgr/remote/profile"
)

// keyBytes is the length of the digests of which a control plane makes the keys of a profile.
const keyBytes = 32

// storedProfile is a rank's place in the store of profiles, and what the store had of the rank's metrics when the rank
// attached. The zero value stores nothing.
type storedProfile struct {
	store   trainmgr.MetricStore // nil: nothing is stored
	keys    offload.Keys
	metrics offload.Metrics
	known   offload.Known
	took    time.Duration  // the search in the store
	writing sync.WaitGroup // The goroutine that writes counts, and Close of the rank waits for it.
}

// find looks up the metrics of a rank's keys. If the store cannot be read, the metrics are measured again. Nothing is
// stored without a name of the model, and without keys from the control plane: an older one sends none, and one that
// does not see a worker of this rank yet sends keys without it.
func (s *storedProfile) find(r *rank, keys *apiv1.ProfileKeys) {
	o, logger := &r.options, r.client.options.Logger
	if o.Store == nil || o.Model == "" {
		return
	}
	if len(keys.GetPipeline()) != keyBytes || len(keys.GetOwnWorkers()) != keyBytes ||
		len(keys.GetOtherWorkers()) != keyBytes {
		logger.Info("the profile is not stored: the control plane does not name the pipeline and the workers of both sides",
			"job", r.id, "rank", o.Rank)
		return
	}
	begun := time.Now()
	s.store = o.Store
	s.keys = offload.KeyParts{
		Model: o.Model, Batch: r.batch,
		Machine: fmt.Sprintf("go, %s/%s, %d processors, %.2f usable; own workers %x", runtime.GOOS, runtime.GOARCH,
			runtime.NumCPU(), processors.Available(), keys.OwnWorkers),
		Pipeline: fmt.Appendf(nil, "%x, read from %s", keys.Pipeline, o.OwnReads),
		Workers:  []string{fmt.Sprintf("%x", keys.OtherWorkers)},
	}.Keys()
	var err error
	if s.metrics, s.known, err = s.store.Lookup(s.keys); err != nil {
		logger.Warn("stored metrics are not used", "job", r.id, "rank", o.Rank, "error", err)
		s.metrics, s.known = offload.Metrics{}, offload.Known{}
	}
	if len(s.metrics.Candidates) != 1 { // of another cut than a control plane's
		s.metrics.Candidates, s.known.Remote = nil, false
	}
	s.took = time.Since(begun)
}

// trainer returns the stored speed of the trainer alone. The zero value means that the store does not have it.
func (s *storedProfile) trainer() profile.Trainer {
	if !s.known.Model {
		return profile.Trainer{}
	}
	return profile.Trainer{RowsPerSecond: s.metrics.Gthp, CPUPerRow: s.metrics.Tcycle, CPUKnown: s.metrics.Tcycle > 0}
}

// whole reports whether the store had every metric that a policy needs: if the trainer does not wait for its own CPUs,
// the other workers are not needed (Algorithm 1, lines 3 and 4).
func (s *storedProfile) whole() bool {
	return s.known.All() || s.known.Model && s.known.Pipeline && s.metrics.Gthp < profile.NoStall*s.metrics.Lthp
}

// put stores a profile in the background, so that a slow file system does not hold the trainer up.
func (s *storedProfile) put(r *rank, measured *apiv1.OffloadMetrics) {
	if s.store == nil || measured == nil {
		return
	}
	m := offload.Metrics{
		Gthp: measured.Gthp, Lthp: measured.Lthp, Pcycle: measured.Pcycle, Tcycle: measured.Tcycle, Cores: measured.Cores,
	}
	have := offload.Known{Model: true, Pipeline: true, Remote: measured.Rthp > 0}
	if have.Remote {
		m.Candidates = []offload.Candidate{{Cut: offload.All, Rthp: measured.Rthp, Ocycle: measured.Ocycle}}
	}
	s.writing.Go(func() {
		if err := s.store.Put(s.keys, m, have); err != nil {
			r.client.options.Logger.Warn("the profile is not stored", "job", r.id, "rank", r.options.Rank, "error", err)
		}
	})
}

// wireMetrics returns stored metrics as a launcher reports them.
func wireMetrics(m *offload.Metrics) *apiv1.OffloadMetrics {
	wire := &apiv1.OffloadMetrics{
		Gthp: m.Gthp, Lthp: m.Lthp, Pcycle: m.Pcycle, Tcycle: m.Tcycle, Cores: m.Cores,
	}
	if len(m.Candidates) > 0 {
		wire.Rthp = m.Candidates[0].Rthp
		if m.Pcycle > 0 { // the entries are of different times, and the control plane refuses Ocycle without Pcycle
			wire.Ocycle = m.Candidates[0].Ocycle
		}
	}
	return wire
}

// startProfile begins the rank's profile if a policy decides the share of the rank's own CPUs, and nothing else is
// known: it takes a profile that is stored, or measures what is missing of it if the job is long enough.
func (r *rank) startProfile(spec *apiv1.JobSpec) {
	logger := r.client.options.Logger
	epoch, owned := r.currentEpoch(), uint64(0)
	for _, numbers := range epoch.Owned {
		owned += numbers.To - numbers.From
	}
	ahead, suits := profile.Suits(spec, epoch.Number, owned)
	switch s := &r.stored; {
	case s.whole():
		r.profiler = profile.Stored(wireMetrics(&s.metrics), s.took)
		logger.Info("the profile is that of an earlier job with the same model, pipeline and workers: nothing is measured",
			"job", r.id, "rank", r.options.Rank, "model", r.options.Model)
	case suits:
		r.profiler = profile.New(r.trainer, processors.Available(), r.sample)
		if !r.options.profilesShortJobs {
			r.profiler.LookAhead(ahead)
		}
		if s.known.Model && s.known.Pipeline {
			r.profiler.KnowOwn(&s.metrics)
			logger.Info("the rank's own CPUs were measured for an earlier job: only the other workers are measured",
				"job", r.id, "rank", r.options.Rank, "model", r.options.Model)
		}
	}
}
