package wire

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/rawsocket"
)

func TestEveryCell(t *testing.T) {
	var said []string
	o := Options{Time: 4 * time.Millisecond, Depths: []int{1, 8}, DriveBytes: 4 << 20, Progress: func(s string) {
		said = append(said, s)
	}}
	results, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, results, 3*2*2*2)
	require.Len(t, said, len(results))
	seen := map[cell]bool{}
	for _, r := range results {
		c := cell{r.Operation, r.Depth, r.Connections, r.Digests}
		assert.False(t, seen[c], "%s twice", c)
		seen[c] = true
		assert.Equal(t, r.Operation.blockBytes(), r.BlockBytes)
		assert.GreaterOrEqual(t, r.Commands, int64(rounds*r.Depth*r.Connections), "%s", c)
		assert.Positive(t, r.ElapsedSeconds)
		assert.Positive(t, r.RawTCPBytesPerSecond)
		assert.InDelta(t, float64(r.Commands)/r.ElapsedSeconds, r.IOPS, 1e-6*r.IOPS)
		assert.InDelta(t, r.IOPS*float64(r.BlockBytes), r.BytesPerSecond, 1e-6*r.BytesPerSecond)
		assert.InDelta(t, r.BytesPerSecond/r.RawTCPBytesPerSecond, r.Ratio, 1e-9)
	}
}

func TestJSONKeysHaveTheirUnits(t *testing.T) {
	b, err := json.Marshal(Result{})
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(b, &keys))
	for _, k := range []string{
		"operation", "block_bytes", "depth", "connections", "digests", "iops", "bytes_per_second",
		"raw_tcp_bytes_per_second", "ratio", "cpu_seconds_per_gb", "allocs_per_command",
	} {
		assert.Contains(t, keys, k)
	}
}

func TestOptionsThatCannotBeMeasured(t *testing.T) {
	for name, o := range map[string]Options{
		"operation":           {Operations: []Operation{"trim"}},
		"depth":               {Depths: []int{0}},
		"depth too great":     {Depths: []int{MaxDepth + 1}},
		"connections":         {Connections: []int{-1}},
		"too many":            {Connections: []int{MaxConnections + 1}},
		"time":                {Time: -1},
		"drive":               {DriveBytes: 4096},
		"drive of odd length": {DriveBytes: MinDrive + 512},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), o)
			require.ErrorIs(t, err, ErrOptions)
		})
	}
}

// TestTheEndOfItsContextEndsIt: every operation ends at once, even if its cells would take longer.
func TestTheEndOfItsContextEndsIt(t *testing.T) {
	for _, op := range Operations() {
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Time: time.Hour, Operations: []Operation{op}, DriveBytes: MinDrive, Progress: func(string) {
			time.AfterFunc(20*time.Millisecond, cancel)
		}}
		results, err := Run(ctx, o)
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, results)
	}
}

// TestRawMovesTheBytesThatItCounts: every block of every turn arrives, in order.
func TestRawMovesTheBytesThatItCounts(t *testing.T) {
	const block = 4 << 10
	source := make([]byte, 8*block)
	rawsocket.FillIncompressible(source)
	for _, connections := range []int{1, 2} {
		into := make([][]byte, 4)
		for i := range into {
			into[i] = make([]byte, block)
		}
		r, err := newRaw(cell{op: RandomRead, depth: len(into) / connections, connections: connections}, source, into)
		require.NoError(t, err)
		for range 3 {
			n, err := r.run(t.Context(), time.Millisecond)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, int64(connections))
		}
		for _, p := range r.pairs {
			// Its first buffer holds some block of its share of the source.
			found := false
			for at := 0; at < len(p.source); at += block {
				found = found || string(p.source[at:at+block]) == string(p.into[0])
			}
			assert.True(t, found)
		}
		require.NoError(t, r.close())
	}
}

func TestRawEndsWhenAConnectionBreaks(t *testing.T) {
	for _, end := range []string{"from", "to"} {
		r, err := newRaw(cell{op: RandomRead, depth: 1, connections: 1}, make([]byte, 8<<10),
			[][]byte{make([]byte, 4<<10)})
		require.NoError(t, err)
		time.AfterFunc(5*time.Millisecond, func() {
			if end == "from" {
				_ = r.pairs[0].from.Close()
			} else {
				_ = r.pairs[0].to.Close()
			}
		})
		_, err = r.run(t.Context(), time.Hour)
		require.Error(t, err)
		_ = r.close()
	}
}
