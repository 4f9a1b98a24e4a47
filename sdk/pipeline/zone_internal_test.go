package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestZonesThatAreSuggestedExist loads every name of the list of suggestions.
func TestZonesThatAreSuggestedExist(t *testing.T) {
	names := strings.Fields(zoneNames)
	assert.Greater(t, len(names), 500)
	for _, name := range names {
		_, err := LoadZone(name)
		require.NoError(t, err)
	}
}
