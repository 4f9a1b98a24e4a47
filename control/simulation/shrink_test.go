package simulation

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkShrunk shrinks a day that violates a property and checks the shorter day.
func checkShrunk(t *testing.T, failure *Failure) {
	t.Helper()
	days := 0
	short := Shrink(failure, func() bool { days++; return days <= 25 })
	t.Logf("%d events, shrunk to %d: %s", failure.Events, short.Events, short.Command())
	assert.Equal(t, failure.Property, short.Property)
	assert.LessOrEqual(t, short.Events, failure.Events)

	_, err := New(short.Seed, Options{Mutant: short.Mutant, Reduction: short.Reduction}).Run(short.Events)
	var again *Failure
	require.ErrorAs(t, err, &again, "the shorter day does not repeat")
	assert.Equal(t, short, again)
}

// TestReductionsAreFlags writes reductions as flags and reads them again.
func TestReductionsAreFlags(t *testing.T) {
	for _, want := range append(Reduction{}.smaller(), Reduction{}, Reduction{
		Jobs: []int{0, 2}, Without: []string{"cuts", "drift"}, Ranks: 1, Epochs: 2, Editions: 3, Partitions: 4, Nodes: 5,
		Members: 2, Draw: 7,
	}) {
		var got Reduction
		set := flag.NewFlagSet("", flag.ContinueOnError)
		got.Define(set)
		require.NoError(t, set.Parse(strings.Fields(want.String())))
		assert.Equal(t, want, got)
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(&strings.Builder{})
	new(Reduction).Define(set)
	assert.ErrorContains(t, set.Parse([]string{"--without", "rain"}), "unknown kind of fault rain")
}

// TestReductionsHold checks that reduced days have what their reductions say.
func TestReductionsHold(t *testing.T) {
	for seed := range uint64(20) {
		w := New(seed, Options{Reduction: Reduction{
			Jobs: []int{0}, Without: []string{"cuts"}, Ranks: 1, Epochs: 1, Editions: 1, Partitions: 2, Nodes: 2, Members: 1,
		}})
		require.Len(t, w.jobs, 1)
		j := w.jobs[0]
		assert.Zero(t, w.faults.cutEvery)
		assert.Len(t, j.consumers, 1)
		assert.EqualValues(t, 1, j.epochs)
		assert.Len(t, j.editions, 1)
		assert.LessOrEqual(t, len(j.editions[0].words), 2)
		assert.Len(t, w.nodes, 2)
		assert.Len(t, w.members, 1)
		_, err := w.Run(200_000)
		require.NoError(t, err)
	}
}
