package lifecycle

import (
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// rates holds what was measured of a job's drives and trainer, and the number of drives that follows.
type rates struct {
	*life
	measured bool // P is known; the job runs once the state that says so is stored
}

// Measured records P of the drives, T of the trainer (0: not known), and the number of drives that the job starts
// with. The job runs once its next state is durable: see Commit.
func (r *rates) Measured(p map[string]float64, t float64, drives allocation.Allocation) {
	if r.Phase() != record.Measuring {
		return
	}
	r.state.P, r.state.T, r.measured = p, t, true
	r.Allocated(drives)
}

// DriveMeasured records P of a drive that joined the job.
func (r *rates) DriveMeasured(drive string, rowsPerSecond float64) {
	if r.state.P == nil {
		r.state.P = map[string]float64{}
	}
	r.state.P[drive] = rowsPerSecond
	r.unwritten = true
}

// TrainerMeasured records T of the trainer.
func (r *rates) TrainerMeasured(rowsPerSecond float64) { r.state.T = rowsPerSecond }

// Allocated records how many drives the job runs at once from now on.
func (r *rates) Allocated(drives allocation.Allocation) {
	r.state.Allocation, r.unwritten = drives, true
}
