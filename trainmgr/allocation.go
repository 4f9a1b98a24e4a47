package trainmgr

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// DriveLoad is what Allocate must know of a drive.
type DriveLoad struct {
	Name          string
	RowsPerSecond float64 // P
	Rows          int64   // rows that only this drive holds, or its share of those that several hold
}

// Allocation says how many drives run at once, and what to expect.
type Allocation struct {
	RowsPerSecond float64            `json:"t_rows_per_second"` // T; 0 if not measured: then all drives run
	Drives        int                `json:"drives"`            // how many run at once
	Wanted        int                `json:"drives_wanted"`     // ceil(T/P): more than Drives where there are not so many
	P             map[string]float64 `json:"p_rows_per_second"` // by drive
	// TrainerTime is the epoch at T; Time is the epoch as the drives and the placement of the data allow it.
	TrainerTime   time.Duration `json:"trainer_ns"`
	Time          time.Duration `json:"expected_ns"`
	ExpectedStall time.Duration `json:"expected_stall_ns"` // Time - TrainerTime, or 0
	Note          string        `json:"note"`              // in words: what binds
}

// Allocate decides how many drives run at once: as few as make their P add up to T, counting them from the slowest,
// so that any choice of so many sustains T (ceil(T/P) of equal drives, PreSto IV-B); all of them if T is 0; never more
// than most, unless that is 0. It foretells the stall when so many drives at once, or the one that holds the most,
// cannot sustain T.
func Allocate(t float64, drives []DriveLoad, most int) (Allocation, error) {
	a := Allocation{RowsPerSecond: t, P: make(map[string]float64, len(drives))}
	if len(drives) == 0 {
		return a, fmt.Errorf("%w: no drive holds a row of the data", ErrOptions)
	}
	var rows int64
	rates := make([]float64, 0, len(drives))
	slowest := ""         // the drive that would need longest for its rows, alone
	var longest float64   // seconds that it needs
	var work, sum float64 // seconds that all need, one after the other; rows/s that all make at once
	for _, d := range drives {
		if !(d.RowsPerSecond > 0) || math.IsInf(d.RowsPerSecond, 0) {
			return a, fmt.Errorf("%w: drive %s: P is %v rows/s", ErrOptions, d.Name, d.RowsPerSecond)
		}
		a.P[d.Name] = d.RowsPerSecond
		rows += d.Rows
		rates = append(rates, d.RowsPerSecond)
		sum += d.RowsPerSecond
		need := float64(d.Rows) / d.RowsPerSecond
		work += need
		if need > longest {
			longest, slowest = need, d.Name
		}
	}
	sort.Float64s(rates)
	a.Wanted = wanted(t, rates)
	a.Drives = min(a.Wanted, len(drives))
	held := most > 0 && a.Drives > most
	if held {
		a.Drives = most
	}
	trainer := 0.0
	if t > 0 {
		trainer = float64(rows) / t
	}
	// As many drives as T asks for share the work in time, unless one holds too much: then that one decides. (The drives
	// that are not among the slowest make no less than these on average.)
	shared := 0.0
	if a.Drives < a.Wanted || t <= 0 {
		shared = work / float64(a.Drives)
	}
	need := math.Max(trainer, math.Max(longest, shared))
	a.Time, a.TrainerTime = seconds(need), seconds(trainer)
	if t > 0 {
		a.ExpectedStall = seconds(need - trainer)
	}
	switch {
	case t <= 0 && held:
		a.Note = fmt.Sprintf("T was not measured, and the job's options allow %d drives at once", most)
	case t <= 0:
		a.Note = "T was not measured: every drive runs"
	case need <= trainer:
		a.Note = fmt.Sprintf("%d of %d drives sustain the trainer's %.0f rows/s", a.Drives, len(drives), t)
	case longest > shared*(1+1e-9):
		a.Note = fmt.Sprintf("drive %s holds %.0f%% of the rows and alone needs %.1f s for them: spread its partitions", slowest, 100*share(slowest, drives, rows), longest)
	case held:
		a.Note = fmt.Sprintf("the job's options allow %d drives at once, the trainer's %.0f rows/s want %d", most, t, a.Wanted)
	default:
		a.Note = fmt.Sprintf("the drives make %.0f rows/s together, the trainer takes %.0f: %d more would sustain it", sum, t, a.Wanted-len(drives))
	}
	return a, nil
}

// wanted is how many drives sustain T, the slowest first; of those that there are not, each makes the mean. rates
// ascend; T of 0 wants all.
func wanted(t float64, rates []float64) int {
	if t <= 0 {
		return len(rates)
	}
	have := 0.0
	for n, r := range rates {
		if have >= t {
			return n
		}
		have += r
	}
	more := math.Ceil((t - have) / (have / float64(len(rates))))
	return len(rates) + int(math.Max(0, math.Min(more, math.MaxInt32)))
}

// share is the part of all rows that a drive holds.
func share(name string, drives []DriveLoad, rows int64) float64 {
	for _, d := range drives {
		if d.Name == name && rows > 0 {
			return float64(d.Rows) / float64(rows)
		}
	}
	return 0
}

// seconds converts to a Duration, saturating.
func seconds(s float64) time.Duration {
	if s > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
