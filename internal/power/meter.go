package power

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options say what measures, and what the model takes where nothing does.
type Options struct {
	Powercap string        // the folder of the counters; "" means /sys/class/powercap
	Readings string        // file of readings of the whole machine, lines of time,watts; "": none
	Idle     time.Duration // Open measures the idle machine for this time; 0: energy is not split into static and dynamic
	Model    Model
	// GPUs returns the power that GPUs draw, as `nvidia-smi` prints it. nil runs the program, if there is one.
	GPUs func(context.Context) ([]byte, error)
	// Now returns the time; nil means time.Now.
	Now func() time.Time
	// Every is the time between two readings of the counters; 0 means a second.
	Every time.Duration
}

// Model is the power that the model takes, in watts.
type Model struct {
	Core        float64 // A processor's core takes it while it is busy.
	CoreSource  string
	Drive       float64 // A drive takes it while it computes.
	DriveSource string
}

// domain is something whose energy is counted.
type domain interface {
	name() string
	source() string
	// sample reads the domain at a time, and returns the joules since the sample before; the first returns 0.
	sample(ctx context.Context, now time.Time) (joules float64, err error)
}

// Meter measures energy.
type Meter struct {
	options Options
	domains []domain
	notes   []string
	idle    map[string]float64 // watts by domain
}

// Open finds what measures, and measures the idle machine if options ask for it. Errors wrap ErrReadings, or are the
// context's.
func Open(ctx context.Context, o Options) (*Meter, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	m := &Meter{options: o}
	if o.Readings != "" {
		if _, err := readReadings(o.Readings); err != nil {
			return nil, err
		}
	} else {
		m.findCounters()
		m.findGPUs(ctx)
	}
	if o.Idle <= 0 {
		return m, nil
	}
	return m, m.measureIdle(ctx)
}

// measureIdle measures what the machine draws while this process waits.
func (m *Meter) measureIdle(ctx context.Context) error {
	r := m.begin(ctx)
	select {
	case <-ctx.Done():
		r.stop(ctx)
		return fmt.Errorf("power: measure the idle machine: %w", ctx.Err())
	case <-time.After(m.options.Idle):
	}
	r.stop(ctx)
	if r.seconds <= 0 {
		return nil
	}
	list, err := r.measured()
	if errors.Is(err, errShort) {
		m.notes = append(m.notes, err.Error()+": static and dynamic energy are not told apart")
		return nil
	}
	m.idle = make(map[string]float64, len(list))
	for _, d := range list {
		m.idle[d.Name] = d.Joules / r.seconds
	}
	return err
}

// Measure does some work and returns the energy of the machine meanwhile: measured, or modelled from what the work
// used. The error is the work's: what cannot be measured is a note of the result. A nil Meter measures nothing, and the
// energy is nil.
func (m *Meter) Measure(ctx context.Context, work func() (Use, error)) (*Energy, error) {
	if m == nil {
		_, err := work()
		return nil, err
	}
	r := m.begin(ctx)
	used, err := work()
	if err != nil {
		r.stop(ctx)
		return nil, err
	}
	return r.end(ctx, used), nil
}

// run is something whose energy is measured.
type run struct {
	meter   *Meter
	begun   time.Time
	seconds float64

	quit chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex // guards what follows while the goroutine runs
	joules []float64  // by domain
	failed []error    // by domain
}

// begin begins to measure. The run must be ended.
func (m *Meter) begin(ctx context.Context) *run {
	r := &run{meter: m, quit: make(chan struct{}), joules: make([]float64, len(m.domains)),
		failed: make([]error, len(m.domains))}
	r.sample(ctx)
	clear(r.joules) // what came before the run
	r.begun = m.options.Now()
	if len(m.domains) > 0 {
		r.done.Go(func() { r.watch(ctx) })
	}
	return r
}

// watch reads the counters until the run ends.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(r.meter.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-tick.C:
			r.sample(ctx)
		}
	}
}

// sample reads every domain once. A domain that failed is not read again in this run.
func (r *run) sample(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.meter.options.Now()
	for i, d := range r.meter.domains {
		if r.failed[i] != nil {
			continue
		}
		joules, err := d.sample(ctx, now)
		r.joules[i] += joules
		r.failed[i] = err
	}
}

// stop ends the measuring.
func (r *run) stop(ctx context.Context) {
	close(r.quit)
	r.done.Wait()
	r.sample(ctx)
	r.seconds = r.meter.options.Now().Sub(r.begun).Seconds()
}

// measured returns the energy of each domain that did not fail, or what the file of readings says. The error wraps
// ErrReadings.
func (r *run) measured() (list []Domain, err error) {
	if path := r.meter.options.Readings; path != "" {
		list, err := readReadings(path)
		if err != nil {
			return nil, err
		}
		end := r.begun.Add(time.Duration(r.seconds * float64(time.Second)))
		joules, err := list.joules(r.begun, end)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return []Domain{{Name: "machine", Source: path, Joules: joules}}, nil
	}
	for i, d := range r.meter.domains {
		if r.failed[i] == nil {
			list = append(list, Domain{Name: d.name(), Source: d.source(), Joules: r.joules[i]})
		}
	}
	return list, nil
}

// Use is what a run used of the things whose power the model knows.
type Use struct {
	CPUSeconds float64
	// DriveSeconds are the seconds of modelled drives, added up. Above 0 the energy is modelled even where the machine
	// measures, since the machine is not the drives.
	DriveSeconds float64
	Rows         int64
}

// end ends a run and returns its energy: measured, or modelled from what the run used.
func (r *run) end(ctx context.Context, u Use) *Energy {
	r.stop(ctx)
	e := &Energy{Kind: Measured, Seconds: r.seconds, Notes: append([]string(nil), r.meter.notes...)}
	for i, err := range r.failed {
		if err != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("%s is left out: %v", r.meter.domains[i].name(), err))
		}
	}
	if u.DriveSeconds == 0 {
		var err error
		if e.Domains, err = r.measured(); err != nil {
			e.Notes = append(e.Notes, err.Error())
		}
	}
	if len(e.Domains) == 0 {
		e.model(r.meter.options.Model, u)
	}
	e.addUp(r.meter.idle, u.Rows)
	return e
}
