package record

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/vocabulary"
)

const document = "name: test\nbatch: 10\nsparse:\n  - columns: [cat_0]\n    ops: [sigrid_hash: {salt: 0, max: 1000}]\n"

// TestDefaultsAreFilledIn checks that Check fills in defaults in a copy of the submission.
func TestDefaultsAreFilledIn(t *testing.T) {
	given := &apiv1.JobSpec{Name: "job", Pipeline: []byte(document)}
	before := proto.CloneOf(given)
	s, sealed, err := Check(given, testKey)
	require.NoError(t, err)
	assert.True(t, sealed)
	assert.True(t, proto.Equal(before, given))
	want := &apiv1.JobSpec{
		Name: "job", Pipeline: []byte(document), Epochs: 1, Ranks: 1, Weight: 1, RankTail: "drop", Order: "fastest",
		Placement: "auto",
		Plan:      &apiv1.PlanOptions{Batch: 10, Tail: "keep", Shuffle: "splits", SplitBatches: dataset.DefaultSplitBatches},
	}
	assert.True(t, proto.Equal(want, s.Job), "%v", s.Job)
	assert.Equal(t, 10, s.Plan.Batch)
	assert.Nil(t, s.Resume)
	again, _, err := Check(s.Job, testKey)
	require.NoError(t, err)
	assert.True(t, proto.Equal(s.Job, again.Job), "what was filled in stays")
}

// Zones are written out in what is stored, once: a later leader with other rules makes the same job.
func TestTimeZonesAreWrittenOut(t *testing.T) {
	const document = "sparse: [{columns: [at], ops: [get_local_hour: {zone: Europe/Berlin}]}]"
	s, _, err := Check(&apiv1.JobSpec{Name: "job", Pipeline: []byte(document)}, testKey)
	require.NoError(t, err)
	assert.Contains(t, string(s.Job.Pipeline), `{"zone":"Europe/Berlin","changes":{"-9223372036854775808":3600,`)
	assert.Equal(t, s.Job.Pipeline, s.Pipeline.JSON())
	again, _, err := Check(s.Job, testKey)
	require.NoError(t, err)
	assert.True(t, proto.Equal(s.Job, again.Job))
	_, _, err = Check(&apiv1.JobSpec{Name: "job", Pipeline: []byte("sparse: [{columns: [a], ops: [get_local_hour: " +
		"{zone: " +
		"Mars/Olympus}]}]")}, testKey)
	require.ErrorIs(t, err, ErrSpec)
}

func TestSpecsThatCanNeverBe(t *testing.T) {
	for name, change := range map[string]func(*apiv1.JobSpec){
		"name":           func(j *apiv1.JobSpec) { j.Name = "a b" },
		"no name":        func(j *apiv1.JobSpec) { j.Name = "" },
		"no pipeline":    func(j *apiv1.JobSpec) { j.Pipeline = nil },
		"pipeline":       func(j *apiv1.JobSpec) { j.Pipeline = []byte("sparse: 7") },
		"epochs":         func(j *apiv1.JobSpec) { j.Epochs = MaxEpoch + 1 },
		"ranks":          func(j *apiv1.JobSpec) { j.Ranks = MaxRanks + 1 },
		"rank tail":      func(j *apiv1.JobSpec) { j.RankTail = "some" },
		"order":          func(j *apiv1.JobSpec) { j.Order = "some" },
		"weight":         func(j *apiv1.JobSpec) { j.Weight = math.NaN() },
		"T":              func(j *apiv1.JobSpec) { j.TRowsPerSecond = math.Inf(1) },
		"no T":           func(j *apiv1.JobSpec) { j.TRowsPerSecond = math.NaN() },
		"drives":         func(j *apiv1.JobSpec) { j.MaxDrives = -1 },
		"placement":      func(j *apiv1.JobSpec) { j.Placement = "moon" },
		"abandon":        func(j *apiv1.JobSpec) { j.AbandonAfterSeconds = -1 },
		"abandon soon":   func(j *apiv1.JobSpec) { j.AbandonAfterSeconds = 0.5 },
		"abandon late":   func(j *apiv1.JobSpec) { j.AbandonAfterSeconds = MaxAbandon.Seconds() + 1 },
		"abandon nan":    func(j *apiv1.JobSpec) { j.AbandonAfterSeconds = math.NaN() },
		"pattern":        func(j *apiv1.JobSpec) { j.Exclude = []string{"[a"} },
		"batch":          func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Batch: math.MaxInt64} },
		"split":          func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{SplitBatches: -1} },
		"no such window": func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Window: 2} },
		"window":         func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Window: math.MaxInt64} },
		"boundary":       func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Boundary: "x"} },
		"tail":           func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Tail: "x"} },
		"shuffle":        func(j *apiv1.JobSpec) { j.Plan = &apiv1.PlanOptions{Shuffle: "x"} },
		"token":          func(j *apiv1.JobSpec) { j.Resume = []byte("x") },
		"token's epoch":  func(j *apiv1.JobSpec) { j.Resume = WrapToken(testKey, bareToken(t)) },
		"another cluster": func(j *apiv1.JobSpec) {
			j.Epochs, j.Resume = 9, WrapToken(make([]byte, KeyBytes),
				bareToken(t))
		},
	} {
		spec := &apiv1.JobSpec{Name: "job", Pipeline: []byte(document)}
		change(spec)
		_, _, err := Check(spec, testKey)
		assert.ErrorIs(t, err, ErrSpec, name)
	}
}

// TestTokensAreReadWithTheSpec: Check reads sealed and bare tokens, and reports which of the two a token was.
func TestTokensAreReadWithTheSpec(t *testing.T) {
	for _, seal := range []bool{true, false} {
		token := bareToken(t)
		if seal {
			token = WrapToken(testKey, token)
		}
		s, sealed, err := Check(&apiv1.JobSpec{Name: "job", Pipeline: []byte(document), Epochs: 4, Resume: token},
			testKey)
		require.NoError(t, err)
		assert.Equal(t, seal, sealed)
		assert.EqualValues(t, 3, s.Resume.Epoch)
	}
}

// TestVocabulariesOfAJob: a job names a described file for each vocabulary of its pipeline, and no other.
func TestVocabulariesOfAJob(t *testing.T) {
	described := &vocabulary.Description{Rules: vocabulary.Rules{}.Normalize(), Sizes: []int64{5},
		Columns: []vocabulary.Column{{Name: "cat_0"}}, Digest: vocabulary.Digest{1}}
	raw, err := described.Encode()
	require.NoError(t, err)
	named := func(change func(*apiv1.JobVocabulary)) *apiv1.JobVocabulary {
		v := &apiv1.JobVocabulary{Name: "piper", Sha256: described.Digest[:], Bytes: described.Bytes(), Description: raw}
		if change != nil {
			change(v)
		}
		return v
	}
	spec := func(list ...*apiv1.JobVocabulary) *apiv1.JobSpec {
		return &apiv1.JobSpec{Name: "job", Vocabularies: list, Pipeline: []byte("sparse:\n  - {columns: [cat_0], ops: " +
			"[vocabulary: piper]}\nvocabularies: {piper: {}}\n")}
	}
	s, _, err := Check(spec(named(nil)), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 5, s.Pipeline.Vocabularies[0].File.Keys())
	for _, c := range []struct {
		name string
		list []*apiv1.JobVocabulary
		want string
	}{
		{"none", nil, "--vocabulary piper=FILE"},
		{"twice", []*apiv1.JobVocabulary{named(nil), named(nil)}, "named twice"},
		{"another name", []*apiv1.JobVocabulary{named(func(v *apiv1.JobVocabulary) { v.Name = "pipe" })}, `"pipe"`},
		{"a short digest", []*apiv1.JobVocabulary{named(func(v *apiv1.JobVocabulary) { v.Sha256 = v.Sha256[:31] })},
			"31 bytes"},
		{"no description", []*apiv1.JobVocabulary{named(func(v *apiv1.JobVocabulary) { v.Description = nil })}, "damaged"},
		{"another length", []*apiv1.JobVocabulary{named(func(v *apiv1.JobVocabulary) { v.Bytes += 8 })}, "is of"},
	} {
		_, _, err := Check(spec(c.list...), nil)
		require.ErrorIs(t, err, ErrSpec, c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
	_, _, err = Check(spec(), nil)
	require.ErrorIs(t, err, problem.ErrVocabulary)
}
