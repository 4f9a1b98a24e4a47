// Package operators measures MiniPipe's operators one by one on this machine, for comparison with the table in the
// paper: Neg2Zero, Logarithm, Hex2Int, Modulus, and the building and the application of vocabularies of 8K and of 512K
// keys.
//
// # What is measured
//
// Each thread has a column of its own, of values as they are in MiniPipe's data set D-I: dense features are real
// numbers of which some are negative, ids are uniform, as eight hexadecimal digits or as what Hex2Int makes of them.
// The operator reads the column from memory and writes its result to memory, again and again until enough time has
// passed; nothing is read from a file, decoded, or written to tensors. VocabGen makes the vocabulary and its file of a
// whole column in each turn, VocabMap looks up a column of which every id is in the vocabulary. The Go scheduler gets
// as many processors as there are threads.
//
// The table gives seconds for all of the operator's columns of D-I, which has 45,840,617 rows: 13 columns for Neg2Zero
// and Logarithm, 26 for the others. The seconds are computed from the measured values a second: no run
// has 45,840,617 rows.
//
// # Errors
//
// ErrOptions says that an option is out of range.
package operators

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/processors"
)

// ErrOptions says that an option is out of range.
var ErrOptions = errors.New("operators: option out of range")

// Bounds of Options.
const (
	MaxValues  = 1 << 27
	MaxThreads = 1 << 10

	DefaultValues = 1 << 22
	DefaultTime   = time.Second
)

// Options of a measurement. The zero value works.
type Options struct {
	Values  int           // A column has this number of values; 0 is DefaultValues.
	Threads []int         // one measurement for each; empty: 1
	Time    time.Duration // Each measurement takes this time at least; 0 is DefaultTime.
	Seed    uint64
	Folder  string // for the files of vocabularies; "" is the system's folder for temporary files
	// Progress, if not nil, receives each step in words.
	Progress func(string)
}

// Result is one line of the table.
type Result struct {
	Operator           string  `json:"operator"`
	Threads            int     `json:"threads"`
	Values             int64   `json:"values"`
	ElapsedSeconds     float64 `json:"elapsed_seconds"`
	CPUSeconds         float64 `json:"cpu_seconds"` // The whole process took them; 0 where the system does not tell.
	ValuesPerSecond    float64 `json:"values_per_second"`
	CPUValuesPerSecond float64 `json:"cpu_values_per_second"` // values a second of processor time
	DataSetValues      int64   `json:"data_set_values"`       // All columns of the operator in D-I have them.
	DataSetSeconds     float64 `json:"data_set_seconds"`      // for them, at this rate
	Paper              Paper   `json:"paper"`
}

// Paper is the seconds for D-I in MiniPipe's table.
type Paper struct {
	CPU      float64 `json:"cpu_seconds"` // one thread
	A100     float64 `json:"a100_seconds"`
	MiniPipe float64 `json:"minipipe_seconds"`
}

// dataSetRows is the rows of D-I: of Criteo's Kaggle data set.
const dataSetRows = 45_840_617

// Run measures every operator with each number of threads.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if o.Values == 0 {
		o.Values = DefaultValues
	}
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	if len(o.Threads) == 0 {
		o.Threads = []int{1}
	}
	if o.Values < 1 || o.Values > MaxValues || o.Time < 0 {
		return nil, fmt.Errorf("%w: %d values for %v, want 1 to %d values", ErrOptions, o.Values, o.Time, MaxValues)
	}
	var results []Result
	for _, threads := range o.Threads {
		if threads < 1 || threads > MaxThreads {
			return nil, fmt.Errorf("%w: %d threads, want 1 to %d", ErrOptions, threads, MaxThreads)
		}
		for _, op := range table() {
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("%s, %d threads", op.name, threads))
			}
			r, err := o.measure(ctx, op, threads)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", op.name, err)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// measure measures one operator.
func (o *Options) measure(ctx context.Context, op operator, threads int) (Result, error) {
	turns := make([]func() error, threads)
	for i := range turns {
		turn, err := op.prepare(o, uint64(i))
		if err == nil {
			err = turn() // the first turn touches the memory, and does not count
		}
		if err != nil {
			return Result{}, err
		}
		turns[i] = turn
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	counts, errs := make([]int64, threads), make([]error, threads)
	begin, used := time.Now(), processors.Time()
	var group sync.WaitGroup
	for i := range turns {
		group.Go(func() {
			for first := true; errs[i] == nil && (first || time.Since(begin) < o.Time); first = false {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = turns[i]()
				}
				counts[i] += int64(o.Values)
			}
		})
	}
	group.Wait()
	r := Result{Operator: op.name, Threads: threads, DataSetValues: dataSetRows * int64(op.columns), Paper: op.paper,
		ElapsedSeconds: time.Since(begin).Seconds(), CPUSeconds: (processors.Time() - used).Seconds()}
	for _, n := range counts {
		r.Values += n
	}
	r.ValuesPerSecond = float64(r.Values) / r.ElapsedSeconds
	if r.CPUSeconds > 0 {
		r.CPUValuesPerSecond = float64(r.Values) / r.CPUSeconds
	}
	r.DataSetSeconds = float64(r.DataSetValues) / r.ValuesPerSecond
	return r, errors.Join(errs...)
}
