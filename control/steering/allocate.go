package steering

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// MeanP returns the mean P of the workers whose P is known; 0: none is known.
func (r *Rates) MeanP() (mean float64) {
	for _, name := range slices.Sorted(maps.Keys(r.P)) { // sums of floats depend on their order
		mean += r.P[name] / float64(len(r.P))
	}
	return mean
}

// loads lists the drives with a known P, with the rows that each drive holds. P is known only of drives that may make
// splits of the job.
func (s *Supply) loads(p map[string]float64) []allocation.Worker {
	at := map[fleet.DriveID]int{} // in list; -1: P is not known
	var list []allocation.Worker
	for i, holders := range s.Holding {
		measured := int64(0)
		for _, h := range holders {
			index, seen := at[h]
			if !seen {
				index = -1
				if name := h.Node + "/" + h.Drive; p[name] > 0 {
					index = len(list)
					list = append(list, allocation.Worker{Name: name, RowsPerSecond: p[name]})
				}
				at[h] = index
			}
			if index >= 0 {
				measured++
			}
		}
		for _, h := range holders {
			if index := at[h]; index >= 0 {
				list[index].Rows += s.Partitions[i].Rows / measured
			}
		}
	}
	return list
}

// Allocate decides with how many drives a job starts, which is ceil(T/P), and with how many workers of any reach beside
// them. short says that P is that of the first mini-batches. The error is that of a job whose rows nothing can make.
func (j *Job) Allocate(s *Supply, r *Rates, short bool) (allocation.Allocation, error) {
	drives := s.loads(r.P)
	a, err := allocation.Allocate(r.T, drives, int(j.Spec.MaxDrives))
	if errors.Is(err, allocation.ErrNoWorker) && j.Makers.AllowWorkers() {
		a, err = allocation.Allocation{RowsPerSecond: r.T, P: map[string]float64{}}, nil // workers of any reach make all rows
	}
	if err != nil {
		return a, err
	}
	a.Workers = j.gap(s, r, drives)
	a.Note = withWorkers(a.Note, a.Workers)
	if short {
		a.Note += "; P is that of the first mini-batches: the job is too short to measure it"
	}
	if a.Workers > 0 && len(s.Workers) >= a.Workers {
		a.ExpectedStall, a.Time = 0, a.TrainerTime // these workers make the splits that the drives cannot make
	}
	j.allowedDrives, j.allowedWorkers = a.Drives, a.Workers
	return a, nil
}

// gap decides how many workers of any reach a job is allowed beside its drives.
func (j *Job) gap(s *Supply, r *Rates, drives []allocation.Worker) int {
	if !j.Makers.AllowWorkers() {
		return 0
	}
	if !j.Makers.AllowHolders() && (r.T == 0 || j.Makers&ledger.NoAny != 0) {
		return ledger.AllWorkers // T is not known, or every rank has its own workers
	}
	sum, known := 0.0, 0
	for i := range s.Workers {
		if p := r.P[s.Workers[i].Name()]; p > 0 {
			sum, known = sum+p, known+1
		}
	}
	rows := int64(0)
	for i := range s.Partitions {
		rows += s.Partitions[i].Rows
	}
	most := int(j.Spec.MaxDrives)
	need := allocation.FillGap(r.T, drives, most, rows, sum/float64(max(known, 1))).Workers
	if most > 0 {
		need = min(need, max(most-min(most, len(drives)), 0))
	}
	return need
}

// withWorkers adds to an allocation's note how many workers of any reach make the splits that the drives leave.
func withWorkers(note string, workers int) string {
	switch {
	case workers == ledger.AllWorkers && note == "":
		return "workers without data make every split, without a bound"
	case workers == 0:
		return note
	case note == "":
		return fmt.Sprintf("%d workers without data make every split", workers)
	}
	return fmt.Sprintf("%s; %d workers without data are allowed for the rest", note, workers)
}

// AllocationNow returns the allocation in force with the drives that hold the job's data now: a drive whose node is
// dead sustains no trainer.
func (t *Terms) AllocationNow(a allocation.Allocation, s *Supply, r *Rates) allocation.Allocation {
	if len(r.P) == 0 {
		return a
	}
	drives := s.loads(r.P)
	if len(drives) == len(r.P) {
		return a
	}
	alive := fmt.Sprintf("%d of the %d drives whose P is known hold the data now", len(drives), len(r.P))
	now, err := allocation.Allocate(r.T, drives, int(t.Spec.MaxDrives))
	if err != nil { // no drives can be allocated
		a.Drives, a.Note = 0, withWorkers(alive, a.Workers)
		return a
	}
	a.Drives, a.ExpectedStall, a.Note = now.Drives, now.ExpectedStall, withWorkers(alive+": "+now.Note, a.Workers)
	return a
}

// countAgain returns the allocation in force with the number of drives that T requires now. It reports false if T is
// not known or no drive can be allocated.
func (j *Job) countAgain(v *View) (allocation.Allocation, bool) {
	now, err := allocation.Allocate(v.T, v.loads(v.P), int(j.Spec.MaxDrives))
	if err != nil || v.T == 0 {
		return v.Allocation, false
	}
	a := v.Allocation
	a.Wanted, a.ExpectedStall = now.Wanted, now.ExpectedStall
	return a, true
}
