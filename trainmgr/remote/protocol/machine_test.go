package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/statediagram"
)

func TestStepsAreDocumented(t *testing.T) {
	statediagram.Picture[step, stepEvent]{
		File: "../../../docs/architecture.md", Name: "a rank between two epochs", Table: steps, Start: []step{settled},
	}.Document(t)
}

func TestEndedLeasesAreRememberedForAWhile(t *testing.T) {
	var e endedLeases
	assert.False(t, e.contains(0))
	for lease := uint64(1); lease <= 3*uint64(len(e.ring)); lease++ {
		e.add(lease)
		assert.True(t, e.contains(lease))
	}
	assert.Len(t, e.ids, len(e.ring))
	assert.False(t, e.contains(1))
}

// TestAReasonIsText: an error may name a file in bytes that are not text, and a cut may fall into a letter.
func TestAReasonIsText(t *testing.T) {
	long := strings.Repeat("ä", maxReason)
	for _, s := range []string{"a", "", long, "a" + long, "\xff\xfe name"} {
		got := shortened(s)
		assert.True(t, utf8.ValidString(got), "%q", got)
		assert.LessOrEqual(t, len(got), maxReason)
	}
	assert.Equal(t, "a"+long[:maxReason-2], shortened("a"+long))
	assert.Equal(t, " name", shortened("\xff\xfe name"))
}
