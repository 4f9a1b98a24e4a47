package remote

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/metricfile"
	"github.com/millrace/millrace/trainmgr/offload"
	"github.com/millrace/millrace/trainmgr/remote/profile"
)

// profileKeys are the keys of a control plane whose parts begin with the given bytes.
func profileKeys(pipeline, own, others byte) *apiv1.ProfileKeys {
	digest := func(first byte) []byte { return append([]byte{first}, make([]byte, keyBytes-1)...) }
	return &apiv1.ProfileKeys{Pipeline: digest(pipeline), OwnWorkers: digest(own), OtherWorkers: digest(others)}
}

// metricsFile returns a store in a file that does not exist yet.
func metricsFile(t *testing.T) (store *metricfile.File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "metrics.json")
	store, err := metricfile.New(path)
	require.NoError(t, err)
	return store, path
}

// TestAStoredProfileIsNotMeasured: the first job measures and stores its profile. The second one, of the same keys,
// reports that profile at once and measures nothing. After a change of the other workers only these are measured.
func TestAStoredProfileIsNotMeasured(t *testing.T) {
	t.Parallel()
	store, _ := metricsFile(t)
	run := func(keys *apiv1.ProfileKeys) (sides []string, profile *apiv1.OffloadMetrics, from string,
		status ProfileStatus) {
		t.Helper()
		c := newCluster(t, clusterOptions{rows: 4 * leastProfiled, batch: 4, split: 4, nodes: 2})
		c.spec.Offload, c.nodes[0].serves, c.keys = "extended", true, keys
		j := c.attach(t, c.dial(t), AttachOptions{Profile: true, profilesShortJobs: true, Pieces: 2, Model: "dlrm",
			Store: store, OwnReads: "files", RowsPerSecond: 1e12})
		sent := func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.ContainsFunc(c.reports, func(r *apiv1.RankReport) bool { return r.Profile != nil })
		}
		for _, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if ended, _, _ := j.rank.profiler.Ended(); ended {
				require.Eventually(t, sent, time.Minute, time.Millisecond)
				break
			}
		}
		status = j.Profile()
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.Len(t, r.Notes, 1)
		require.NoError(t, j.Close())
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.reports {
			if r.Profiling != "" && !slices.Contains(sides, r.Profiling) {
				sides = append(sides, r.Profiling)
			}
			if r.Profile != nil {
				profile, from = r.Profile, r.ProfileFrom
				assert.GreaterOrEqual(t, r.TrainingSeconds, r.ProfileSeconds)
			}
		}
		require.NotNil(t, profile)
		return sides, profile, from, status
	}
	both := []string{apiv1.SideOwn, apiv1.SideOthers}
	sides, first, from, status := run(profileKeys(1, 2, 3))
	assert.Equal(t, both, sides)
	assert.Equal(t, apiv1.ProfileMeasured, from)
	assert.Equal(t, apiv1.ProfileMeasured, status.From)
	assert.Positive(t, status.Seconds)
	assert.Less(t, status.Seconds, status.Training)

	sides, again, from, status := run(profileKeys(1, 2, 3))
	assert.Empty(t, sides)
	assert.True(t, proto.Equal(first, again), "%v, and stored %v", first, again)
	assert.Equal(t, apiv1.ProfileStored, from)
	assert.Equal(t, apiv1.ProfileStored, status.From)

	sides, other, from, _ := run(profileKeys(1, 2, 4))
	assert.Equal(t, []string{apiv1.SideOthers}, sides)
	assert.Equal(t, apiv1.ProfileMeasured, from)
	assert.InDelta(t, first.Lthp, other.Lthp, 0, "stored")
}

// findRank returns a rank for a search in a store, and what it logs.
func findRank(t *testing.T, o AttachOptions) (*rank, *bytes.Buffer) {
	t.Helper()
	logged := &bytes.Buffer{}
	c := &Client{options: Options{Logger: slog.New(slog.NewTextHandler(logged, nil))}}
	return &rank{client: c, options: o, batch: 100, id: "j1"}, logged
}

// TestEveryKeyIsCompared: metrics are found by the same model, batch, pipeline, source and workers, and each
// difference hides exactly the metrics that depend on it.
func TestEveryKeyIsCompared(t *testing.T) {
	t.Parallel()
	store, _ := metricsFile(t)
	o := AttachOptions{Model: "dlrm", Store: store, OwnReads: "files"}
	find := func(o AttachOptions, batch int, keys *apiv1.ProfileKeys) *storedProfile {
		r, _ := findRank(t, o)
		r.batch = batch
		r.stored.find(r, keys)
		return &r.stored
	}
	keys := profileKeys(1, 2, 3)
	r, _ := findRank(t, o)
	r.stored.find(r, keys)
	r.stored.put(r, &apiv1.OffloadMetrics{Gthp: 5, Lthp: 4, Pcycle: 0.3, Rthp: 2, Ocycle: 0.1, Tcycle: 0.5, Cores: 8})
	r.stored.writing.Wait()

	all, own := offload.Known{Model: true, Pipeline: true, Remote: true}, offload.Known{Model: true, Pipeline: true}
	model := offload.Known{Model: true}
	reads, other := o, o
	reads.OwnReads, other.Model = "nodes", "forest"
	for name, v := range map[string]struct {
		o     AttachOptions
		batch int
		keys  *apiv1.ProfileKeys
		want  offload.Known
	}{
		"the same":           {o, 100, keys, all},
		"other workers":      {o, 100, profileKeys(1, 2, 4), own},
		"another pipeline":   {o, 100, profileKeys(9, 2, 3), model},
		"another source":     {reads, 100, keys, model},
		"another own worker": {o, 100, profileKeys(1, 9, 3), offload.Known{}},
		"another batch":      {o, 101, keys, offload.Known{}},
		"another model":      {other, 100, keys, offload.Known{}},
	} {
		assert.Equal(t, v.want, find(v.o, v.batch, v.keys).known, name)
	}
	found := find(o, 100, keys)
	assert.True(t, found.whole())
	assert.Equal(t, profile.Trainer{RowsPerSecond: 5, CPUPerRow: 0.5, CPUKnown: true}, found.trainer())
	assert.Equal(t, profile.Trainer{}, find(other, 100, keys).trainer())
}

// TestProfilesThatAreNotStored: without a name of the model, without keys of the control plane, or without this rank's
// worker among them, nothing is read and nothing is written. A store that fails costs a warning.
func TestProfilesThatAreNotStored(t *testing.T) {
	t.Parallel()
	store, path := metricsFile(t)
	result := &apiv1.OffloadMetrics{Gthp: 5, Lthp: 4, Rthp: 2}
	noWorker, short := profileKeys(1, 2, 3), profileKeys(1, 2, 3)
	noWorker.OwnWorkers, short.OtherWorkers = nil, short.OtherWorkers[1:]
	for name, v := range map[string]struct {
		model string
		keys  *apiv1.ProfileKeys
	}{
		"no name": {"", profileKeys(1, 2, 3)}, "an older control plane": {"dlrm", nil}, "no own worker": {"dlrm", noWorker},
		"a short digest": {"dlrm", short},
	} {
		r, _ := findRank(t, AttachOptions{Model: v.model, Store: store})
		r.stored.find(r, v.keys)
		r.stored.put(r, result)
		r.stored.writing.Wait()
		assert.False(t, r.stored.whole(), name)
		assert.NoFileExists(t, path, name)
	}
	r, logged := findRank(t, AttachOptions{Model: "dlrm", Store: brokenStore{}})
	r.stored.find(r, profileKeys(1, 2, 3))
	assert.Contains(t, logged.String(), "stored metrics are not used")
	assert.False(t, r.stored.whole())
	r.stored.put(r, result)
	r.stored.writing.Wait()
	assert.Contains(t, logged.String(), "the profile is not stored")
}

type brokenStore struct{}

var errDisk = errors.New("the disk is gone")

func (brokenStore) Lookup(offload.Keys) (offload.Metrics, offload.Known, error) {
	return offload.Metrics{Gthp: 1}, offload.Known{Model: true, Pipeline: true, Remote: true}, errDisk
}

func (brokenStore) Put(offload.Keys, offload.Metrics, offload.Known) error { return errDisk }

// TestAStoredProfileWithoutAStall: a trainer that hardly waits for its own CPUs needs no metrics of the others.
func TestAStoredProfileWithoutAStall(t *testing.T) {
	t.Parallel()
	store, _ := metricsFile(t)
	r, _ := findRank(t, AttachOptions{Model: "dlrm", Store: store})
	r.stored.find(r, profileKeys(1, 2, 3))
	r.stored.put(r, &apiv1.OffloadMetrics{Gthp: 109, Lthp: 100})
	r.stored.writing.Wait()
	r.stored.find(r, profileKeys(1, 2, 3))
	assert.Equal(t, offload.Known{Model: true, Pipeline: true}, r.stored.known)
	assert.True(t, r.stored.whole())
	r.stored.metrics.Gthp = 111
	assert.False(t, r.stored.whole())
}

// TestStoredEntriesOfDifferentTimes: an entry of the workers may be older than that of the pipeline, which has no
// Pcycle. The control plane refuses Ocycle without Pcycle.
func TestStoredEntriesOfDifferentTimes(t *testing.T) {
	t.Parallel()
	m := &offload.Metrics{Gthp: 9, Lthp: 1, Candidates: []offload.Candidate{{Cut: offload.All, Rthp: 2, Ocycle: 3}}}
	assert.Zero(t, wireMetrics(m).Ocycle)
	m.Pcycle = 1
	assert.InDelta(t, 3, wireMetrics(m).Ocycle, 0)
}
