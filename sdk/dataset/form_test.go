package dataset

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfAToken holds a checkpoint token's bytes: trainers keep tokens beside their models for years.
func TestFormOfAToken(t *testing.T) {
	token := Token{Job: counting(), Epoch: 3, Mark: 1000, Ranges: []Range{{1002, 1003}, {1300, math.MaxUint64}}}
	b, err := token.MarshalBinary()
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/token.v2.hex", b)
	var back Token
	require.NoError(t, back.UnmarshalBinary(goldenfile.Read(t, "testdata/token.v2.hex")))
	assert.Equal(t, token, back)
}

// TestFormOfAManifest holds a manifest's canonical form, of which a job's digest is made.
func TestFormOfAManifest(t *testing.T) {
	m, err := NewManifest([]Partition{
		{Name: "part-<1>.parquet", Bytes: 1 << 40, Rows: 3, RowGroups: []int64{2, 1}, Content: Digest{0xab, 31: 0xcd}},
		{Name: "é/\"2\"\n", Bytes: 12},
	})
	require.NoError(t, err)
	b, err := m.MarshalJSON()
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/manifest.v2.json", string(b)+"\n")
}

// TestFormOfAJob holds the digests of one job in every option that a digest contains.
func TestFormOfAJob(t *testing.T) {
	list := ""
	for _, o := range []Options{
		{},
		{Batch: 100},
		{Tail: DropTail},
		{Shuffle: ShuffleNone},
		{Shuffle: ShuffleRows, Window: 4},
		{Seed: math.MaxUint64},
		{SplitBatches: 8},
		{Boundary: BoundaryNone},
		{Boundary: BoundaryNone, Batch: 100, Shuffle: ShuffleRows, Window: 4},
	} {
		d, err := JobDigest(counting(), []byte(`{"name":"rm1"}`), o)
		require.NoError(t, err)
		list += d.String() + "\n"
	}
	goldenfile.Text(t, "testdata/jobs.v1.txt", list)
}
