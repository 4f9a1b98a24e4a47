package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/record"
)

// noData is the data of a job without editions.
type noData struct{}

func (noData) Edition(int) *machine.Edition { return nil }

// TestALeaderDoesNotJudgeSessionsOfLaterLeaders makes each call with a session of a later leader. A leader whose term
// is over, and that does not know it yet, must not say that the session was fenced off.
func TestALeaderDoesNotJudgeSessionsOfLaterLeaders(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m := machine.New(machine.Config{Ledger: ledger.Config{Fence: 5}})
	j := &machine.Job{
		LifeTerms:   lifecycle.Terms{ID: "j", Name: "j", Ranks: 1, Epochs: 1},
		LedgerTerms: ledger.Job{ID: "j", Ranks: 1}, Data: noData{},
	}
	require.NoError(t, m.Add(j, lifecycle.Submission(record.Edition{}), nil, now))
	for fence, deposed := range map[uint64]bool{4: false, 5: false, 6: true} {
		s := ledger.Session{Fence: fence, Generation: 1}
		_, leased := m.Lease(j, 1, machine.LeaseRequest{Session: s}, now)
		_, acknowledged := m.Acknowledge(j, s, 0, nil, 0, now)
		_, sealed := m.Checkpoint(j, &s)
		for call, err := range map[string]error{
			"lease": leased, "acknowledge": acknowledged, "checkpoint": sealed,
			"release": m.Release(j, machine.Release{Session: s}, now),
		} {
			if deposed {
				assert.ErrorIs(t, err, machine.ErrDeposed, call)
			} else {
				assert.NotErrorIs(t, err, machine.ErrDeposed, call)
			}
		}
	}
}
