package format

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOffsetIndexChecks(t *testing.T) {
	ch := Chunk{Offset: 4, Compressed: 100}
	good := []PageLocation{{4, 50, 0}, {54, 50, 7}}
	require.NoError(t, checkLocations(good, &ch, 10))
	for name, bad := range map[string][]PageLocation{
		"before the chunk":      {{3, 50, 0}},
		"after the chunk":       {{54, 51, 0}},
		"overlapping":           {{4, 50, 0}, {53, 50, 7}},
		"negative size":         {{4, -1, 0}},
		"first row not 0":       {{4, 50, 1}},
		"rows run backwards":    {{4, 10, 0}, {14, 10, 7}, {24, 10, 6}},
		"rows beyond the group": {{4, 50, 0}, {54, 50, 11}},
		"offset at the end":     {{1<<63 - 1, 50, 0}},
	} {
		require.ErrorIs(t, checkLocations(bad, &ch, 10), ErrCorrupt, name)
	}
	f := &File{Size: 1000}
	for _, place := range [][2]int64{{-1, 10}, {10, -1}, {995, 10}, {1<<63 - 1, 10}} {
		_, err := readLocations(bytes.NewReader(make([]byte, 1000)), f,
			&Chunk{OffsetIndexOffset: place[0], OffsetIndexLength: int32(place[1])}, 10)
		require.ErrorIs(t, err, ErrCorrupt, place)
	}
}
