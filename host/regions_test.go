package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// TestARegionHasItsOwnP: P is measured and kept for each region of a drive, and a region is busy with its own work
// alone. What the drive holds is the same in all regions, and is kept once.
func TestARegionHasItsOwnP(t *testing.T) {
	_, regions := twoRegions(t)
	m := openManager(t, regions...)
	j, _ := describeJob(t, m, dataset.Options{})
	require.NoError(t, m.Prepare(t.Context(), j))
	first, kept, err := m.Rate(t.Context(), j.Digest, "r0", RateOptions{})
	require.NoError(t, err)
	assert.False(t, kept)
	busy, err := m.Busy(t.Context(), regions[0])
	require.NoError(t, err)
	assert.Positive(t, busy)
	busy, err = m.Busy(t.Context(), regions[1])
	require.NoError(t, err)
	assert.Zero(t, busy, "the drive's counters are of all regions")
	assert.Empty(t, m.Status(regions[1]).Rates)
	_, kept, err = m.Rate(t.Context(), j.Digest, "r1", RateOptions{})
	require.NoError(t, err)
	assert.False(t, kept, "P of the other region is not this region's")
	again, kept, err := m.Rate(t.Context(), j.Digest, "r0", RateOptions{})
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Equal(t, first, again)

	for region, d := range regions {
		s := m.Status(d)
		assert.Equal(t, regions[0].UUID(), s.UUID)
		assert.Equal(t, region, s.Region)
		assert.Equal(t, 2, s.Regions)
		assert.Len(t, s.Rates, 1)
		assert.Equal(t, regions[0].Identity(), d.Identity())
	}
	require.NoError(t, m.Finish(t.Context(), j.Digest))
	busy, err = m.Busy(t.Context(), regions[0])
	require.NoError(t, err)
	assert.Zero(t, busy, "of jobs that are prepared")
	require.NoError(t, regions[1].Close())
	_, err = m.Busy(t.Context(), regions[1])
	assert.Error(t, err, "a drive that is gone does not answer")
}
