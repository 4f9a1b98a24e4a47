package lifecycle

import (
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// Measured says how fast the drives are, how fast the trainer is (0: not known), and how many drives the job starts
// with. The job runs once that is durable: see Commit.
func (j *Job) Measured(p map[string]float64, t float64, drives allocation.Allocation) {
	if j.Phase() != record.Measuring {
		return
	}
	j.state.P, j.state.T, j.measured = p, t, true
	j.Allocated(drives)
}

// DriveMeasured says how fast a drive is that joined the job.
func (j *Job) DriveMeasured(drive string, rowsPerSecond float64) {
	if j.state.P == nil {
		j.state.P = map[string]float64{}
	}
	j.state.P[drive] = rowsPerSecond
	j.unwritten = true
}

// TrainerMeasured says how fast the trainer is.
func (j *Job) TrainerMeasured(rowsPerSecond float64) { j.state.T = rowsPerSecond }

// Allocated says how many drives the job runs at once from now on.
func (j *Job) Allocated(drives allocation.Allocation) { j.state.Allocation, j.unwritten = drives, true }
