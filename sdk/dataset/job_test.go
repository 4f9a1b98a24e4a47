package dataset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func counting() (d Digest) {
	for i := range d {
		d[i] = byte(i)
	}
	return d
}

// The two digests were computed in Python from the layout in JobDigest's comment.
func TestJobDigestGolden(t *testing.T) {
	pipeline := []byte(`{"name":"rm1"}`)
	d, err := JobDigest(counting(), pipeline, Options{})
	require.NoError(t, err)
	assert.Equal(t, "8ea3e50ae93b4cfe5215da1d8489164970a7d63287999da9c0a1c745e3dc9f7a", d.String())

	d, err = JobDigest(counting(), pipeline, Options{Batch: 100, Tail: DropTail, Shuffle: ShuffleRows, Seed: 1<<64 - 1,
		SplitBatches: 8})
	require.NoError(t, err)
	assert.Equal(t, "05497dec436473c7b3aa92769c100ecbe83b41d3d4ec99e97e93b9894ebf12a0", d.String())
}

func TestJobDigestTellsJobsApart(t *testing.T) {
	digest := func(m Digest, p string, o Options) Digest {
		d, err := JobDigest(m, []byte(p), o)
		require.NoError(t, err)
		return d
	}
	base := digest(Digest{}, "p", Options{})
	assert.Equal(t, base, digest(Digest{}, "p", Options{Batch: DefaultBatch, SplitBatches: DefaultSplitBatches}),
		"defaults may be spelled out")
	assert.Equal(t, base, digest(Digest{}, "p", Options{Epoch: 5}), "a job has many epochs")
	assert.Equal(t, base, digest(Digest{}, "p", Options{Window: 2}), "only row shuffling has windows")
	seen := map[Digest]string{base: "base"}
	for what, d := range map[string]Digest{
		"manifest": digest(Digest{1}, "p", Options{}),
		"pipeline": digest(Digest{}, "q", Options{}),
		"batch":    digest(Digest{}, "p", Options{Batch: 16}),
		"tail":     digest(Digest{}, "p", Options{Tail: DropTail}),
		"none":     digest(Digest{}, "p", Options{Shuffle: ShuffleNone}),
		"rows":     digest(Digest{}, "p", Options{Shuffle: ShuffleRows}),
		"window":   digest(Digest{}, "p", Options{Shuffle: ShuffleRows, Window: 3}),
		"seed":     digest(Digest{}, "p", Options{Seed: 1}),
		"splits":   digest(Digest{}, "p", Options{SplitBatches: 8}),
		"boundary": digest(Digest{}, "p", Options{Boundary: BoundaryNone}),
	} {
		assert.Empty(t, seen[d], what)
		seen[d] = what
	}
}

func TestDigestText(t *testing.T) {
	d := counting()
	b, err := d.MarshalText()
	require.NoError(t, err)
	var back Digest
	require.NoError(t, back.UnmarshalText(b))
	assert.Equal(t, d, back)
	for _, bad := range []string{"", "00", string(b) + "00", "0A" + string(b[2:]), "zz" + string(b[2:])} {
		require.Error(t, back.UnmarshalText([]byte(bad)), bad)
	}
}
