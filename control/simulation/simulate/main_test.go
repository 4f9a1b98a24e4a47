package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFailurePrintsItsReplay runs a day that violates a property, and runs the printed command.
func TestAFailurePrintsItsReplay(t *testing.T) {
	var out strings.Builder
	err := run([]string{"--seed", "1", "--mutant",
		"a node gives the mini-batch behind the one that was asked for", "--shrink", "1s"}, &out)
	require.ErrorContains(t, err, "as mini-batch")
	assert.Contains(t, out.String(), "the shortest day that was found has ")
	_, command, ok := strings.Cut(err.Error(), "go run ./control/simulation/simulate ")
	require.True(t, ok, "%v", err)
	var arguments []string
	for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(command, -1) {
		arguments = append(arguments, strings.Trim(word, `"`))
	}
	out.Reset()
	again := run(arguments, &out)
	require.Error(t, again)
	assert.Equal(t, err.Error(), again.Error())
	assert.Contains(t, out.String(), "a launcher of job")
}

// TestDaysHaveOneHash runs the same days twice.
func TestDaysHaveOneHash(t *testing.T) {
	printed := func() string {
		var out strings.Builder
		require.NoError(t, run([]string{"--first", "1", "--days", "5"}, &out))
		before, _, ok := strings.Cut(out.String(), " events/s")
		require.True(t, ok)
		return before[:strings.LastIndex(before, ",")]
	}
	first := printed()
	assert.Contains(t, first, "5 days from seed 1, ")
	assert.Equal(t, first, printed())
}
