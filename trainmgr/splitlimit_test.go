package trainmgr

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/offload"
)

// TestTheLocalSideIsLimited runs a job whose profile has the trainer use nearly every processor: report and log name
// the pacing of the local side, and every row comes. A job whose profile lacks the trainer's CPU time has no limit.
func TestTheLocalSideIsLimited(t *testing.T) {
	for _, cpu := range []float64{0, 1e-9} {
		local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
		log := &said{}
		o := sharedOptions(local, dataset.Deterministic, -1)
		o.Logger = slog.New(log)
		o.Offload.Metrics = &offload.Metrics{Gthp: 1e9, Lthp: 1e8, Pcycle: 1e-8, Tcycle: cpu, Cores: 1, Supply: 1e8,
			Candidates: []offload.Candidate{{Cut: offload.ReadAndTransforms, Rthp: 1e8, Supply: 1e8}}}
		j, err := Submit(t.Context(), remote, o)
		require.NoError(t, err)
		rows, _ := take(t, j, -1)
		checkRows(t, local, 1005, rows)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		if cpu == 0 {
			assert.Equal(t, "none", r.Offload.LimitedBy)
			assert.Zero(t, r.Offload.LocalLimit)
			assert.Zero(t, log.count(saysLimited))
			continue
		}
		assert.Equal(t, "pacing", r.Offload.LimitedBy)
		assert.Positive(t, r.Offload.LocalLimit)
		assert.LessOrEqual(t, r.Offload.LocalLimit, 1.1)
		assert.Equal(t, 1, log.count(saysLimited))
	}
}

// saysLimited is the line of the log that says how the local side is limited.
const saysLimited = "INFO the trainer's own workers are paced to the CPU time that the trainer leaves free"
