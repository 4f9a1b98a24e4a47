package controller

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
)

// brokenParts make a drive go wrong where a test of this package says so. Other packages use package faults, which
// imports this one. A test wraps the flash and the compute device, and sets the faults at any time; the zero value
// injects nothing. Methods are safe for concurrent use.
type brokenParts struct {
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

// failRead makes every read that touches bytes [off, off+n) of flash stop there with err.
func (f *brokenParts) failRead(off, n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, flashFault{off, off + n, err})
}

// failWrite makes every write that touches bytes [off, off+n) of flash stop there with err.
func (f *brokenParts) failWrite(off, n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, flashFault{off, off + n, err})
}

// delayReads makes every read of flash take at least d.
func (f *brokenParts) delayReads(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// failExecute makes one execution fail with a status and a result, after skip more that do not.
func (f *brokenParts) failExecute(skip int, status nvme.Status, result uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.execute = append(f.execute, executeFault{skip, status, result})
}

// mend takes all faults away.
func (f *brokenParts) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads, f.writes, f.delay, f.execute = nil, nil, 0, nil
}

// wrapFlash wraps flash.
func (f *brokenParts) wrapFlash(flash Flash) Flash { return faultyFlash{flash, f} }

// wrapCompute wraps a compute device.
func (f *brokenParts) wrapCompute(c Compute) Compute { return faultyCompute{c, f} }

type faultyFlash struct {
	Flash
	parts *brokenParts
}

// first is the fault that a transfer of [off, off+n) meets first.
func first(faults []flashFault, off, n int64) (at int64, err error) {
	for _, fault := range faults {
		if begin := max(off, fault.off); begin < min(off+n, fault.end) && (err == nil || begin < at) {
			at, err = begin, fault.err
		}
	}
	return at, err
}

func (f faultyFlash) ReadAt(p []byte, off int64) (int, error) {
	f.parts.mu.Lock()
	delay := f.parts.delay
	at, fault := first(f.parts.reads, off, int64(len(p)))
	f.parts.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if fault == nil {
		return f.Flash.ReadAt(p, off)
	}
	n, err := f.Flash.ReadAt(p[:at-off], off)
	if err != nil {
		return n, err
	}
	return n, fault
}

func (f faultyFlash) WriteAt(p []byte, off int64) (int, error) {
	f.parts.mu.Lock()
	at, fault := first(f.parts.writes, off, int64(len(p)))
	f.parts.mu.Unlock()
	if fault == nil {
		return f.Flash.WriteAt(p, off)
	}
	n, err := f.Flash.WriteAt(p[:at-off], off)
	if err != nil {
		return n, err
	}
	return n, fault
}

type faultyCompute struct {
	Compute
	parts *brokenParts
}

func (f faultyCompute) Execute(ctx context.Context, x Execution) (uint64, nvme.Status) {
	f.parts.mu.Lock()
	for i := range f.parts.execute {
		planned := &f.parts.execute[i]
		if planned.skip > 0 {
			planned.skip--
			continue
		}
		fault := *planned
		f.parts.execute = append(f.parts.execute[:i:i], f.parts.execute[i+1:]...)
		f.parts.mu.Unlock()
		return fault.result, fault.status
	}
	f.parts.mu.Unlock()
	return f.Compute.Execute(ctx, x)
}
