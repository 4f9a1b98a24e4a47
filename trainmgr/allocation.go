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
// so that any choice of so many sustains T (ceil(T/P) of equal drives, PreSto IV-B); all of them if T is 0. It foretells
// the stall when the drives together, or the one that holds the most, cannot sustain T.
func Allocate(t float64, drives []DriveLoad) (Allocation, error) {
	a := Allocation{RowsPerSecond: t, P: make(map[string]float64, len(drives))}
	if len(drives) == 0 {
		return a, fmt.Errorf("%w: no drive holds the data", ErrOptions)
	}
	var rows int64
	rates := make([]float64, 0, len(drives))
	slowest := "" // the drive that would need longest for its rows, alone
	var longest float64
	for _, d := range drives {
		if d.RowsPerSecond <= 0 || math.IsInf(d.RowsPerSecond, 0) || math.IsNaN(d.RowsPerSecond) {
			return a, fmt.Errorf("%w: drive %s: P is %v rows/s", ErrOptions, d.Name, d.RowsPerSecond)
		}
		a.P[d.Name] = d.RowsPerSecond
		rows += d.Rows
		rates = append(rates, d.RowsPerSecond)
		if need := float64(d.Rows) / d.RowsPerSecond; need > longest {
			longest, slowest = need, d.Name
		}
	}
	sort.Float64s(rates)
	var sum float64
	for _, r := range rates {
		sum += r
	}
	if t <= 0 {
		a.Drives, a.Wanted = len(drives), len(drives)
		a.Time = seconds(math.Max(longest, float64(rows)/sum))
		a.Note = "T was not measured: every drive runs"
		return a, nil
	}
	a.TrainerTime = seconds(float64(rows) / t)
	have := 0.0
	for _, r := range rates {
		if have >= t {
			break
		}
		have += r
		a.Drives++
	}
	a.Wanted = a.Drives
	if have < t {
		a.Wanted += int(math.Ceil((t - have) / (sum / float64(len(rates)))))
	}
	together := float64(rows) / math.Min(sum, t)
	need := math.Max(together, longest)
	a.Time = seconds(need)
	if stall := need - float64(rows)/t; stall > 0 {
		a.ExpectedStall = seconds(stall)
	}
	switch {
	case sum < t && longest <= together:
		a.Note = fmt.Sprintf("the drives make %.0f rows/s together, the trainer takes %.0f: %d more would sustain it", sum, t, a.Wanted-a.Drives)
	case longest > float64(rows)/t:
		a.Note = fmt.Sprintf("drive %s holds %.0f%% of the rows and alone needs %.1f s for them: spread its partitions", slowest, 100*share(slowest, drives, rows), longest)
	default:
		a.Note = fmt.Sprintf("%d of %d drives sustain the trainer's %.0f rows/s", a.Drives, len(drives), t)
	}
	return a, nil
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
