package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFragments is a rank of a plan in which mini-batches 2 and 7 have fragments of two splits, after some commands.
func inFragments(t *testing.T, commands ...string) *scripted {
	s := newScripted(t)
	s.run(append([]string{"attach s1 0 boundary=none"}, commands...)...)
	return s
}

// run carries out commands.
func (s *scripted) run(commands ...string) {
	for _, command := range commands {
		s.do(strings.Fields(command))
		s.settle()
	}
}

// heldLeases returns the leases that the rank holds.
func (s *scripted) heldLeases() []uint64 { return sortedKeys(s.machine.delivery.held) }

// TestLeasesOfFragmentsAreHeld checks that a lease is held until the mini-batches at both of its ends are acknowledged,
// also when each of its own fragments has come and the mini-batches that it has whole are acknowledged.
func TestLeasesOfFragmentsAreHeld(t *testing.T) {
	s := inFragments(t, "deliver", "answer report", "answer ask grants=1:0-3@n0,2:3-6@n1,3:6-9@n0", "start", "brings 1",
		"step 0-2", "clock 50ms", "answer acknowledge")
	require.Equal(t, []uint64{1, 2, 3}, s.heldLeases(), "the last fragment of lease 1 is the first half of mini-batch 2")
	assert.Contains(t, s.out.String(), "holds [1 2 3], has fetched [1]")
	s.run("brings 2", "step 2-3", "clock 50ms", "answer acknowledge")
	require.Equal(t, []uint64{2, 3}, s.heldLeases())
	s.run("step 3-4", "clock 50ms", "answer acknowledge")
	require.Equal(t, []uint64{2, 3}, s.heldLeases())
	s.run("step 4-5", "clock 50ms", "answer acknowledge")
	require.Equal(t, []uint64{3}, s.heldLeases())
	s.run("brings 3", "step 5-7", "clock 50ms", "answer acknowledge")
	require.Equal(t, []uint64{3}, s.heldLeases(), "mini-batch 7 has a fragment of the last split")
	s.run("answer ask grants=4:9-10@n1", "start", "brings 4", "step 7-8", "clock 50ms", "answer acknowledge")
	require.Empty(t, s.heldLeases())
	assert.Zero(t, s.machine.RowsLeft())
}

// TestTheDueMiniBatchNeedsAllOfItsFragments checks that the rank gives a later lease back if it holds no lease for the
// second fragment of the mini-batch that is due, and keeps it if it does.
func TestTheDueMiniBatchNeedsAllOfItsFragments(t *testing.T) {
	for grants, held := range map[string][]uint64{
		"1:0-3@n0,2:6-9@n1":          {1},
		"1:0-3@n0,2:6-9@n1,3:3-6@n0": {1, 2, 3},
		"1:0-3@n0,2:6-9@n1,3:3-4@n0": {1, 2, 3},
		"1:0-3@n0,2:6-9@n1,3:4-6@n0": {1, 3},
	} {
		s := inFragments(t, "deliver ordered=yes", "answer report", "answer ask grants="+grants, "start", "brings 1",
			"answer ask", "clock 1s", "answer ask", "clock 1100ms", "answer ask")
		assert.Equal(t, held, s.heldLeases(), grants)
	}
}

func TestGrantsOfFragmentsAreBounded(t *testing.T) {
	for grant, refused := range map[string]string{
		"1:0-3@n0":  "",
		"1:2-3@n0":  "",
		"1:9-10@n0": "",
		"1:2-4@n0":  "lease 1: fragments [2, 4) of epoch 0 are not of split 0, [0, 3) of epoch 0",
		"1:9-11@n0": "lease 1: fragments [9, 11) of epoch 0 are not of split 3, [9, 10) of epoch 0",
		"1:3-3@n0":  "lease 1: fragments [3, 3) of epoch 0 are not of split 1, [3, 6) of epoch 0",
	} {
		s := inFragments(t, "deliver", "answer report", "answer ask grants="+grant)
		if refused == "" {
			require.NoError(t, s.machine.delivery.err, grant)
			require.Equal(t, []uint64{1}, s.heldLeases())
			continue
		}
		require.ErrorContains(t, s.machine.delivery.err, refused)
		require.Empty(t, s.heldLeases())
	}
}
