package roofline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/rm"
)

// Options select the measurement. The options of the workload are those of bench/rm.
type Options struct {
	rm.Options
	CopyTime   time.Duration // for each measuring of the copy, 0 means 500 ms
	BufferSize int           // bytes of each copy's source and target, 0 means 256 MiB
}

// Result is one line of the table.
type Result struct {
	Model              string  `json:"model"`
	Engine             string  `json:"engine"`
	Threads            int     `json:"threads"`
	RowsPerSecond      float64 `json:"rows_per_second"`
	BytesPerSecond     float64 `json:"bytes_per_second"`      // in and out
	CopyBytesPerSecond float64 `json:"copy_bytes_per_second"` // read and written
	Share              float64 `json:"roofline_share"`
}

// Run measures a copy before and after each workload.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if o.CopyTime == 0 {
		o.CopyTime = 500 * time.Millisecond
	}
	if o.BufferSize == 0 {
		o.BufferSize = 256 << 20
	}
	if o.Threads == 0 {
		o.Threads = 1
	}
	var list []Result
	models := o.Models
	for _, m := range models {
		before := Copy(ctx, o.Threads, o.BufferSize, o.CopyTime)
		o.Models = []string{m}
		r, err := rm.Run(ctx, o.Options)
		if err != nil {
			return list, err
		}
		after := Copy(ctx, o.Threads, o.BufferSize, o.CopyTime)
		if err := ctx.Err(); err != nil {
			return list, fmt.Errorf("bench roofline: %w", err)
		}
		line := Result{Model: m, Engine: r[0].Engine, Threads: o.Threads, RowsPerSecond: r[0].RowsPerSecond,
			BytesPerSecond:     r[0].InputBytesPerSecond + r[0].OutputBytesPerSecond,
			CopyBytesPerSecond: (before + after) / 2}
		if line.CopyBytesPerSecond > 0 {
			line.Share = line.BytesPerSecond / line.CopyBytesPerSecond
		}
		list = append(list, line)
	}
	return list, nil
}

// Copy returns how many bytes a second the given number of threads read and write together when each copies its own
// buffer of size bytes again and again: the median of the rounds that fit into the time, at least three.
func Copy(ctx context.Context, threads, size int, least time.Duration) float64 {
	type pair struct{ from, to []byte }
	pairs := make([]pair, threads)
	for i := range pairs {
		pairs[i] = pair{make([]byte, size), make([]byte, size)}
		for at := 0; at < size; at += 4096 { // pages are there before the clock runs
			pairs[i].from[at], pairs[i].to[at] = 1, 1
		}
	}
	var rates []float64
	for begin := time.Now(); (len(rates) < 3 || time.Since(begin) < least) && ctx.Err() == nil; {
		var wg sync.WaitGroup
		start := time.Now()
		for _, p := range pairs {
			wg.Go(func() { copy(p.to, p.from) })
		}
		wg.Wait()
		rates = append(rates, 2*float64(threads)*float64(size)/time.Since(start).Seconds())
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}
