package lifecycle

import (
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// Measured records P of the drives, T of the trainer (0: not known), and the number of drives that the job starts
// with. The job runs once its next state is durable: see Commit.
func (j *Job) Measured(p map[string]float64, t float64, drives allocation.Allocation) {
	if j.Phase() != record.Measuring {
		return
	}
	j.state.P, j.state.T, j.measured = p, t, true
	j.Allocated(drives)
}

// DriveMeasured records P of a drive that joined the job.
func (j *Job) DriveMeasured(drive string, rowsPerSecond float64) {
	if j.state.P == nil {
		j.state.P = map[string]float64{}
	}
	j.state.P[drive] = rowsPerSecond
	j.unwritten = true
}

// TrainerMeasured records T of the trainer.
func (j *Job) TrainerMeasured(rowsPerSecond float64) { j.state.T = rowsPerSecond }

// Allocated records how many drives the job runs at once from now on.
func (j *Job) Allocated(drives allocation.Allocation) { j.state.Allocation, j.unwritten = drives, true }
