package record

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

func selection(t testing.TB, partitions int) *fleet.Dataset {
	list := make([]dataset.Partition, partitions)
	for i := range list {
		list[i] = dataset.Partition{Name: fmt.Sprintf("part-%06d", i), Bytes: 1, Rows: 10, RowGroups: []int64{10},
			Content: dataset.Digest{byte(i), byte(i >> 8), byte(i * 7)}}
	}
	m, err := dataset.NewManifest(list)
	require.NoError(t, err)
	return &fleet.Dataset{Manifest: m, Schema: []byte{1, 2}, Columns: columntypes.TextSchema(false), Malformed: 1,
		MeanLength: map[string]float64{"cat_0": 1.5}}
}

func TestEditionsArePackedInPieces(t *testing.T) {
	for _, n := range []int{1, 20_000} {
		s := selection(t, n)
		pieces, err := Pack(s)
		require.NoError(t, err)
		for _, p := range pieces {
			assert.LessOrEqual(t, len(p), PieceBytes)
		}
		got, err := Unpack(pieces)
		require.NoError(t, err)
		want, err := s.Manifest.Digest()
		require.NoError(t, err)
		have, err := got.Manifest.Digest()
		require.NoError(t, err)
		assert.Equal(t, want, have)
		s.Manifest, got.Manifest = nil, nil
		assert.Equal(t, s, got)
		if len(pieces) > 1 {
			_, err = Unpack(pieces[1:])
			assert.Error(t, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	pieces, err := Pack(selection(f, 2))
	require.NoError(f, err)
	f.Add(pieces[0])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unpack([][]byte{b})
		if err != nil {
			return
		}
		again, err := Pack(s)
		require.NoError(t, err)
		same, err := Unpack(again)
		require.NoError(t, err)
		require.Equal(t, s.Columns, same.Columns)
	})
}

// TestPhasesSayWhatTheyAre: every phase is before the first lease, begun, or ended, and its words contain the reason.
func TestPhasesSayWhatTheyAre(t *testing.T) {
	for p, want := range map[Phase]struct{ begun, ended bool }{
		"": {}, Preparing: {}, Measuring: {}, Running: {begun: true}, Waiting: {begun: true},
		Done: {ended: true}, Cancelled: {ended: true}, Failed: {ended: true}, Abandoned: {ended: true},
	} {
		assert.Equal(t, want.begun, p.Begun(), p)
		assert.Equal(t, want.ended, p.Ended(), p)
	}
	assert.Equal(t, "waiting: new partitions", Waiting.Words("new partitions"))
	assert.Equal(t, "done", Done.Words(""))
}
