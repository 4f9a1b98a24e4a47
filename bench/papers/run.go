package papers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrOptions says that an option is out of range.
var ErrOptions = errors.New("papers")

// Options select what is run. The zero value runs every paper in full.
type Options struct {
	Papers []string // names; empty: all
	Quick  bool     // less data, and a tenth of the time
	// Notes are kept with the results: what else ran on the machine.
	Notes   []string
	Command string // as it was typed, for the results
	Folder  string // for data; "" is the system's folder for temporary files
	// Progress, if not nil, receives each step in words.
	Progress func(string)

	smoke bool // the least that runs: for tests, whose values mean nothing
}

// experiment is how one paper's values are made.
type experiment struct {
	name string
	// model sets the values that are the same on every machine and cost no time to compute.
	model func(r *Result) error
	// measure sets the others. It may use values of model.
	measure func(ctx context.Context, o *Options, r *Result) error
}

// experiments are in the order of the page.
func experiments() []experiment {
	return []experiment{
		{"presto", modelPreSto, measurePreSto},
		{"minipipe", modelMiniPipe, measureMiniPipe},
		{"piper", modelPiper, measurePiper},
		{"dpp", modelDPP, measureDPP},
		{"fastflow", modelFastFlow, measureFastFlow},
	}
}

// Names returns the names of the papers, in the order of the page.
func Names() []string {
	var names []string
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names
}

// Run makes the values of the papers. It returns those that were made before an error.
func Run(ctx context.Context, o Options) (results []*Result, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, name := range o.Papers {
		if _, err := Find(name); err != nil {
			return nil, err
		}
	}
	chosen := map[string]bool{}
	for _, name := range o.Papers {
		chosen[name] = true
	}
	for _, e := range experiments() {
		if len(chosen) > 0 && !chosen[e.name] {
			continue
		}
		r, err := e.run(ctx, &o)
		if err != nil {
			return results, fmt.Errorf("%s: %w", e.name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func (e *experiment) run(ctx context.Context, o *Options) (*Result, error) {
	r, begin := newResult(e.name, o.Command), time.Now()
	r.Notes = append(r.Notes, o.Notes...)
	if err := e.model(r); err != nil {
		return nil, err
	}
	if err := e.measure(ctx, o, r); err != nil {
		return nil, err
	}
	r.Seconds, r.Machine.LoadAfter = time.Since(begin).Seconds(), load()
	return r, r.check()
}

// duration is how long one measurement lasts, at least.
func (o *Options) duration(whole time.Duration) time.Duration {
	switch {
	case o.smoke:
		return time.Millisecond
	case o.Quick:
		return whole / quickTime
	}
	return whole
}

// size is the size of something: rows, cases.
func (o *Options) size(whole int64) int64 {
	switch {
	case o.smoke:
		return max(1, whole/smokeSize)
	case o.Quick:
		return whole / quickSize
	}
	return whole
}

// whole is the size of something that a quick run does not make smaller, since counts depend on it.
func (o *Options) whole(size int64) int64 {
	if o.smoke {
		return o.size(size)
	}
	return size
}

// What a quick run and a test divide times and sizes by.
const (
	quickTime = 10
	quickSize = 4
	smokeSize = 64
)
