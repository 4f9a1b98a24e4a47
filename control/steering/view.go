package steering

import (
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Worker is a drive, or a worker of any reach, as its node reported it last.
type Worker struct {
	ID    fleet.DriveID
	Drive *apiv1.Drive
	// Ready reports whether the drive is ready, by its own report, and its node is not drained.
	Ready bool
	// Prepared reports whether the worker's node is prepared for the data, and grants on the worker are possible.
	Prepared bool
}

// Name returns the worker's name in a job's reports.
func (w *Worker) Name() string { return w.ID.Node + "/" + w.ID.Drive }

// Supply is what can make the splits of a job over one edition of its data.
type Supply struct {
	Partitions []dataset.Partition
	Holding    [][]fleet.DriveID // by partition: the drives of live nodes that hold it
	Holders    []Worker          // Each drive of Holding that may make splits of the job is in Holders once.
	Workers    []Worker          // the live workers of any reach that may make splits of the job
}

// Rates are what was measured of a job's trainer and workers.
type Rates struct {
	T float64            // rows/s of all ranks together; 0: not known
	P map[string]float64 // rows/s, by the names of workers
}

// View is what the owner of a Job sees of the job at one moment.
type View struct {
	Supply
	Rates
	Now           time.Time
	Seconds       float64 // since the owner's term began
	Running       bool    // The phase of the job is running.
	ShortMeasured bool    // P is that of a drive's first mini-batches, because the job is short.
	Status        ledger.JobStatus
	Allocation    allocation.Allocation // in force
	Busy          float64               // mean share of time in which the engines of Status.Running work; 0: not known
	Startable     int                   // workers of any reach that could be started, if the job can use them
	EpochRows     float64               // rows of an epoch of the job's last edition; 0: not known
	EpochsAfter   float64               // epochs of the job after that of Status
}
