package allocation

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/quantity"
)

var (
	// ErrNoWorker says that no worker holds a row of the data.
	ErrNoWorker = errors.New("no drive holds a row of the data")
	// ErrThroughput says that the throughput of a worker is not a positive number.
	ErrThroughput = errors.New("throughput P is not a positive number of rows/s")
)

// roundingShare is the share by which two sums of floating-point numbers may differ and still count as equal.
const roundingShare = 1e-9

// Worker holds the properties of a worker that Allocate needs.
type Worker struct {
	Name          string
	RowsPerSecond float64 // P
	Rows          int64   // rows that only this worker holds, and its share of the rows that several workers hold
}

// Allocation is the number of workers that run at once, and the stall to expect. The JSON names call a worker a
// drive.
type Allocation struct {
	RowsPerSecond float64 `json:"t_rows_per_second"` // T; 0 if it was not measured: then all workers run
	Drives        int     `json:"drives"`            // how many workers run at once
	// ceil(T/P); larger than Drives if there are fewer workers
	Wanted int                `json:"drives_wanted"`
	P      map[string]float64 `json:"p_rows_per_second"` // by the worker's name
	// TrainerTime is the epoch's time at T. Time is the epoch's time as the workers and the placement of the rows
	// allow.
	TrainerTime   time.Duration `json:"trainer_ns"`
	Time          time.Duration `json:"expected_ns"`
	ExpectedStall time.Duration `json:"expected_stall_ns"` // Time - TrainerTime, or 0
	Note          string        `json:"note"`              // describes the bound that applies
	// Workers is how many workers of any reach run beside the drives, as a Gap says; -1 if they are not bounded.
	Workers int `json:"workers,omitempty"`
}

// WorkersFor returns T/P rounded up: how many equal workers sustain the trainer. It is at least 1 and at most 2^31-1,
// and 0 if T or P is not known, which is to say not positive.
func WorkersFor(trainer, worker float64) int {
	if !(trainer > 0) || !(worker > 0) {
		return 0
	}
	return int(math.Max(1, math.Min(math.Ceil(trainer/worker-roundingShare), math.MaxInt32)))
}

// Allocate decides how many workers run at once. It takes as few workers as make their P add up to T (PreSto IV-B) and
// counts them from the slowest, so that any choice of that many sustains T. If T is 0, all workers run. At most limit
// workers run unless limit is 0. Allocate foretells the stall if that many workers at once, or the worker that needs
// the longest for its rows, cannot sustain T.
func Allocate(rowsPerSecond float64, workers []Worker, limit int) (Allocation, error) {
	a := Allocation{RowsPerSecond: rowsPerSecond, P: make(map[string]float64, len(workers))}
	total, err := sumWorkers(workers)
	if err != nil {
		return a, err
	}
	for _, w := range workers {
		a.P[w.Name] = w.RowsPerSecond
	}
	a.Wanted = workersWanted(rowsPerSecond, total.ascendingRates)
	a.Drives = min(a.Wanted, len(workers))
	limited := limit > 0 && a.Drives > limit
	if limited {
		a.Drives = limit
	}
	trainerSeconds := 0.0
	if rowsPerSecond > 0 {
		trainerSeconds = float64(total.rows) / rowsPerSecond
	}
	// If as many workers run as T requires, they make the work in time: workers that are not among the slowest make no
	// less than the slowest. Otherwise the running workers need sharedSeconds for all rows.
	sharedSeconds := 0.0
	if a.Drives < a.Wanted || rowsPerSecond <= 0 {
		sharedSeconds = total.workSeconds / float64(a.Drives)
	}
	needed := max(trainerSeconds, total.longestSeconds, sharedSeconds)
	a.Time, a.TrainerTime = durationOf(needed), durationOf(trainerSeconds)
	if rowsPerSecond > 0 {
		a.ExpectedStall = durationOf(needed - trainerSeconds)
	}
	switch {
	case rowsPerSecond <= 0 && limited:
		a.Note = fmt.Sprintf("T was not measured, and the job's options allow %s at once", quantity.Of(limit, "drive"))
	case rowsPerSecond <= 0:
		a.Note = "T was not measured: every drive runs"
	case needed <= trainerSeconds:
		a.Note = fmt.Sprintf("%d of %d drives sustain the trainer's %.0f rows/s", a.Drives, len(workers), rowsPerSecond)
	case total.longestSeconds > sharedSeconds*(1+roundingShare):
		a.Note = fmt.Sprintf("drive %s holds %.0f%% of the rows and alone needs %.1f s for them: spread its partitions",
			total.longest.Name, 100*float64(total.longest.Rows)/float64(total.rows), total.longestSeconds)
	case limited:
		a.Note = fmt.Sprintf("the job's options allow %s at once, the trainer's %.0f rows/s want %d",
			quantity.Of(limit, "drive"), rowsPerSecond, a.Wanted)
	default:
		a.Note = fmt.Sprintf("the drives make %.0f rows/s together, the trainer takes %.0f: %d more would sustain it",
			total.rowsPerSecond, rowsPerSecond, a.Wanted-len(workers))
	}
	return a, nil
}

// workerSums are the sums over the workers of an allocation.
type workerSums struct {
	rows           int64
	rowsPerSecond  float64   // All workers at once make this rate.
	ascendingRates []float64 // P of each worker
	workSeconds    float64   // for all rows, one worker after the other
	longest        Worker    // the worker that needs the longest for its own rows
	longestSeconds float64   // the time that longest needs
}

// sumWorkers adds up the workers. It refuses a P that is not a valid divisor.
func sumWorkers(workers []Worker) (workerSums, error) {
	var s workerSums
	if len(workers) == 0 {
		return s, ErrNoWorker
	}
	for _, w := range workers {
		if !(w.RowsPerSecond > 0) || math.IsInf(w.RowsPerSecond, 0) {
			return s, fmt.Errorf("drive %s: %w: %v", w.Name, ErrThroughput, w.RowsPerSecond)
		}
		s.rows += w.Rows
		s.rowsPerSecond += w.RowsPerSecond
		s.ascendingRates = append(s.ascendingRates, w.RowsPerSecond)
		seconds := float64(w.Rows) / w.RowsPerSecond
		s.workSeconds += seconds
		if seconds > s.longestSeconds {
			s.longest, s.longestSeconds = w, seconds
		}
	}
	slices.Sort(s.ascendingRates)
	return s, nil
}

// workersWanted returns how many workers sustain T, the slowest first. If all workers together do not, each further
// worker counts with the mean P. If T is 0, all workers are wanted.
func workersWanted(rowsPerSecond float64, ascendingRates []float64) int {
	count := len(ascendingRates)
	if rowsPerSecond <= 0 {
		return count
	}
	sum := 0.0
	for n, rate := range ascendingRates {
		if sum >= rowsPerSecond {
			return n
		}
		sum += rate
	}
	missing := WorkersFor(rowsPerSecond-sum, sum/float64(count))
	return count + missing
}

// durationOf converts seconds to a Duration. It returns the longest Duration if the seconds do not fit into a
// Duration.
func durationOf(seconds float64) time.Duration {
	if seconds > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}
