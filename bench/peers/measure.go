package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// sample is one measuring of one contender.
type sample struct {
	Rows int64   `json:"rows"`
	Wall float64 `json:"wall_seconds"`
	CPU  float64 `json:"cpu_seconds"` // of all threads of its process
}

// contender is something that can be measured: ours or a peer.
type contender interface {
	gather(ctx context.Context) (*block, error)
	measure(ctx context.Context, least time.Duration) (sample, error)
	close() error
}

// errEnough ends a turn that has run long enough.
var errEnough = errors.New("enough")

// patience is how many times the asked time a first turn may take before it is cut short.
const patience = 5

// linked is a contender in this process.
type linked struct {
	runner
	data *dataset
}

// planner is a runner that spends time at the start of each turn that a longer file would make vanish: it is not
// counted.
type planner interface {
	planned() (wall, cpu float64) // seconds so far
}

func (l linked) planned() (wall, cpu float64) {
	if p, ok := l.runner.(planner); ok {
		return p.planned()
	}
	return 0, 0
}

func (l linked) gather(ctx context.Context) (*block, error) { return gather(ctx, l.runner, l.data) }

// measure runs whole turns until the time has passed. A turn that takes many times as long ends early, at a block.
func (l linked) measure(ctx context.Context, least time.Duration) (sample, error) {
	runtime.GC() // collects the garbage of earlier turns
	var rows int64
	wallBefore, cpuBefore := l.planned()
	begin, cpu := time.Now(), cpuSeconds()
	for rows == 0 || time.Since(begin) < least {
		err := l.turn(ctx, func(n int, _ func() (*block, error)) error {
			rows += int64(n)
			if time.Since(begin) > patience*least {
				return errEnough
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, errEnough) {
			return sample{}, err
		}
	}
	s := sample{Rows: rows, Wall: time.Since(begin).Seconds(), CPU: cpuSeconds() - cpu}
	wallAfter, cpuAfter := l.planned()
	s.Wall -= wallAfter - wallBefore
	s.CPU -= cpuAfter - cpuBefore
	return s, nil
}

// spread is a median between its extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return spread{Median: (s[(n-1)/2] + s[n/2]) / 2, Min: s[0], Max: s[n-1]}
}

// alternate measures all contenders in turn, in rounds. samples[i][round] are of contender i.
func alternate(ctx context.Context, contenders []contender, rounds int, least time.Duration) ([][]sample, error) {
	samples := make([][]sample, len(contenders))
	for range rounds {
		for i, c := range contenders {
			s, err := c.measure(ctx, least)
			if err == nil && (s.Rows == 0 || s.Wall <= 0 || s.CPU <= 0) {
				err = fmt.Errorf("nothing measured: %d rows in %v s, with %v s of processor time", s.Rows, s.Wall, s.CPU)
			}
			if err != nil {
				return samples, fmt.Errorf("contender %d: %w", i, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	return samples, nil
}

// rates are rows a second by the wall's clock and by the processor's.
func rates(samples []sample) (wall, cpu []float64) {
	for _, s := range samples {
		wall = append(wall, float64(s.Rows)/s.Wall)
		cpu = append(cpu, float64(s.Rows)/s.CPU)
	}
	return wall, cpu
}

// ratios divides round by round.
func ratios(a, b []float64) []float64 {
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}
