package record

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/control/fleet"
)

func selection(t testing.TB, partitions int) *fleet.Selection {
	list := make([]dataset.Partition, partitions)
	for i := range list {
		list[i] = dataset.Partition{Name: fmt.Sprintf("part-%06d", i), Bytes: 1, Rows: 10, RowGroups: []int64{10}, Footer: dataset.Digest{byte(i), byte(i >> 8), byte(i * 7)}}
	}
	m, err := dataset.NewManifest(list)
	require.NoError(t, err)
	return &fleet.Selection{Manifest: m, Schema: []byte{1, 2}, Columns: pipeline.TextSchema(false), Malformed: 1, MeanLength: map[string]float64{"cat_0": 1.5}}
}

func TestGenerationsArePackedInPieces(t *testing.T) {
	for _, n := range []int{1, 20_000} {
		s := selection(t, n)
		pieces, err := Pack(s)
		require.NoError(t, err)
		for _, p := range pieces {
			assert.LessOrEqual(t, len(p), pieceBytes)
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

// TestPhasesFollowTheTable: nothing follows an end, and every phase can be reached and left.
func TestPhasesFollowTheTable(t *testing.T) {
	all := []Phase{"", Preparing, Measuring, Running, Waiting, Done, Cancelled, Failed, Abandoned}
	reached := map[Phase]bool{"": true}
	for _, from := range all {
		for _, to := range all {
			if err := from.Follow(to); err == nil {
				reached[to] = true
				assert.False(t, from.Ended(), "%s follows %s", to, from)
			} else {
				assert.ErrorContains(t, err, "cannot become")
			}
		}
	}
	for _, p := range all {
		assert.True(t, reached[p], p)
		assert.Equal(t, p == Done || p == Cancelled || p == Failed || p == Abandoned, p.Ended(), p)
		assert.Equal(t, p == Running || p == Waiting, p.Begun(), p)
		if p != "" && !p.Ended() {
			assert.NoError(t, p.Follow(Failed))
			assert.NoError(t, p.Follow(Cancelled))
		}
	}
	assert.Equal(t, "waiting: new partitions", Waiting.Words("new partitions"))
	assert.Equal(t, "done", Done.Words(""))
}
