package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// threads is a contender that runs several runners at once, each over a part of the dataset.
type threads struct {
	runners []runner
	parts   []*dataset
}

// openThreads opens a runner for each part.
func openThreads(ctx context.Context, d *dataset,
	open func(context.Context, *dataset) (runner, error)) (contender, error) {
	t := &threads{}
	for _, part := range d.Parts {
		r, err := open(ctx, part)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.runners, t.parts = append(t.runners, r), append(t.parts, part)
	}
	return t, nil
}

// gather keeps a turn of every runner, part after part.
func (t *threads) gather(ctx context.Context) (*block, error) {
	all := newBlock(t.parts[0].Model.Dense, t.parts[0].keys())
	for i, r := range t.runners {
		b, err := gather(ctx, r, t.parts[i])
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		all.append(b)
	}
	return all, nil
}

// measure runs every runner over its part again and again until the time has passed, and then to the end of a block:
// all of them work until the last one stops, or nearly. First turns are whole, unless they take many times as long.
func (t *threads) measure(ctx context.Context, least time.Duration) (sample, error) {
	runtime.GC() // collects the garbage of earlier turns
	rows, errs := make([]int64, len(t.runners)), make([]error, len(t.runners))
	before := t.planned()
	begin, cpu := time.Now(), cpuSeconds()
	var wait sync.WaitGroup
	for i, r := range t.runners {
		wait.Go(func() { rows[i], errs[i] = repeat(ctx, r, begin, least) })
	}
	wait.Wait()
	s := sample{Wall: time.Since(begin).Seconds(), CPU: cpuSeconds() - cpu}
	for _, n := range rows {
		s.Rows += n
	}
	planned := t.planned() - before
	s.Wall -= planned / float64(len(t.runners))
	s.CPU -= planned
	return s, errors.Join(errs...)
}

// planned sums the time that the runners have spent on planning. It is wall-clock time, which equals processor time
// for one thread on a core of its own.
func (t *threads) planned() (seconds float64) {
	for _, r := range t.runners {
		if p, ok := r.(planner); ok {
			wall, _ := p.planned()
			seconds += wall
		}
	}
	return seconds
}

// repeat is measure's loop for one runner; it returns the rows of the blocks that were made.
func repeat(ctx context.Context, r runner, begin time.Time, least time.Duration) (rows int64, err error) {
	for first := true; first || time.Since(begin) < least; first = false {
		err := r.turn(ctx, func(n int, _ func() (*block, error)) error {
			rows += int64(n)
			if passed := time.Since(begin); passed > patience*least || !first && passed > least {
				return errEnough
			}
			return ctx.Err()
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (t *threads) close() error {
	var errs []error
	for _, r := range t.runners {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
