package record

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr/offload"
)

func TestParseOffload(t *testing.T) {
	for word, want := range map[string]Offload{
		"":              {},
		"0":             {Shares: true, Fixed: true},
		"0.4":           {Shares: true, Fixed: true, Ratio: 0.4},
		"1":             {Shares: true, Fixed: true, Ratio: 1},
		"extended":      {Shares: true, Policy: offload.Extended},
		"paper":         {Shares: true, Policy: offload.Paper},
		"fastflow-code": {Shares: true, Policy: offload.FastFlowCode},
	} {
		got, err := ParseOffload(word)
		require.NoError(t, err, word)
		assert.Equal(t, want, got, word)
	}
	for _, word := range []string{"-0.1", "1.01", "NaN", "inf", "half", "Extended", " 0.4"} {
		_, err := ParseOffload(word)
		require.ErrorIs(t, err, ErrSpec, word)
		assert.Contains(t, err.Error(), "from 0 to 1", word)
	}
}
