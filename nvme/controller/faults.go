package controller

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Faults makes a drive that goes wrong where a test says so: wrap its flash and its compute device, then set the faults
// at any time. The zero value injects nothing. Methods are safe for concurrent use.
type Faults struct {
	mu      sync.Mutex
	reads   []flashFault
	writes  []flashFault
	delay   time.Duration
	execute []executeFault
}

type flashFault struct {
	off, end int64
	err      error
}

type executeFault struct {
	skip   int
	status nvme.Status
	result uint64
}

// FailRead makes every read that touches bytes [off, off+n) of flash stop there with err.
func (f *Faults) FailRead(off, n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, flashFault{off, off + n, err})
}

// FailWrite makes every write that touches bytes [off, off+n) of flash stop there with err.
func (f *Faults) FailWrite(off, n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, flashFault{off, off + n, err})
}

// DelayReads makes every read of flash take at least d.
func (f *Faults) DelayReads(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// FailExecute makes one execution fail with a status and a result, after skip more that do not.
func (f *Faults) FailExecute(skip int, status nvme.Status, result uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.execute = append(f.execute, executeFault{skip, status, result})
}

// Clear takes all faults away.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads, f.writes, f.delay, f.execute = nil, nil, 0, nil
}

// Flash wraps flash.
func (f *Faults) Flash(flash Flash) Flash { return faultyFlash{flash, f} }

// Compute wraps a compute device.
func (f *Faults) Compute(c Compute) Compute { return faultyCompute{c, f} }

type faultyFlash struct {
	Flash
	f *Faults
}

// first is the fault that a transfer of [off, off+n) meets first.
func first(faults []flashFault, off, n int64) (at int64, err error) {
	for _, x := range faults {
		if lo := max(off, x.off); lo < min(off+n, x.end) && (err == nil || lo < at) {
			at, err = lo, x.err
		}
	}
	return at, err
}

func (x faultyFlash) ReadAt(p []byte, off int64) (int, error) {
	x.f.mu.Lock()
	delay := x.f.delay
	at, fault := first(x.f.reads, off, int64(len(p)))
	x.f.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if fault == nil {
		return x.Flash.ReadAt(p, off)
	}
	n, err := x.Flash.ReadAt(p[:at-off], off)
	if err != nil {
		return n, err
	}
	return n, fault
}

func (x faultyFlash) WriteAt(p []byte, off int64) (int, error) {
	x.f.mu.Lock()
	at, fault := first(x.f.writes, off, int64(len(p)))
	x.f.mu.Unlock()
	if fault == nil {
		return x.Flash.WriteAt(p, off)
	}
	n, err := x.Flash.WriteAt(p[:at-off], off)
	if err != nil {
		return n, err
	}
	return n, fault
}

type faultyCompute struct {
	Compute
	f *Faults
}

func (x faultyCompute) Execute(ctx context.Context, ranges []cs.Range, args []byte) (uint64, nvme.Status) {
	x.f.mu.Lock()
	for i := range x.f.execute {
		e := &x.f.execute[i]
		if e.skip > 0 {
			e.skip--
			continue
		}
		fault := *e
		x.f.execute = append(x.f.execute[:i:i], x.f.execute[i+1:]...)
		x.f.mu.Unlock()
		return fault.result, fault.status
	}
	x.f.mu.Unlock()
	return x.Compute.Execute(ctx, ranges, args)
}
