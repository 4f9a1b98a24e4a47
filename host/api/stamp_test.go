package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckStamps(t *testing.T) {
	then := map[string]Stamp{"a": {"m:/a", "1"}, "b": {"m:/b", "1"}}
	for name, c := range map[string]struct {
		now     map[string]Stamp
		changed string
	}{
		"the same":        {map[string]Stamp{"a": {"m:/a", "1"}, "b": {"m:/b", "1"}}, ""},
		"written":         {map[string]Stamp{"a": {"m:/a", "1"}, "b": {"m:/b", "2"}}, "b"},
		"both written":    {map[string]Stamp{"a": {"m:/a", "2"}, "b": {"m:/b", "2"}}, "a"},
		"a copy":          {map[string]Stamp{"a": {"n:/a", "2"}, "b": {"m:/c", "3"}}, ""},
		"on a drive":      {nil, ""},
		"one more of two": {map[string]Stamp{"b": {"m:/b", "1"}, "c": {"m:/c", "2"}}, ""},
	} {
		err := CheckStamps(then, c.now)
		if c.changed == "" {
			require.NoError(t, err, name)
			continue
		}
		var since *ChangedSinceError
		require.ErrorAs(t, err, &since, name)
		require.ErrorIs(t, err, ErrChangedSince, name)
		assert.Equal(t, c.changed, since.Partition, name)
		assert.ErrorContains(t, err, "m:/"+c.changed, name)
	}
	require.NoError(t, CheckStamps(nil, then))
}
