package faults

import (
	"fmt"
	"syscall"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// Flash wraps the flash of a drive.
func (in *Injector) Flash(f controller.Flash) controller.Flash { return &flash{f, in} }

type flash struct {
	controller.Flash
	in *Injector
}

// countTransfer counts a transfer of bytes [off, off+n). It returns where the transfer stops, and why; nil: it does
// not.
func (in *Injector) countTransfer(op Operation, off, n int64) (stop int64, err error) {
	size := in.blockSize.Load()
	first, end := uint64(off/size), uint64((off+n+size-1)/size)
	in.mu.Lock()
	defer in.mu.Unlock()
	var lba uint64
	for i := range in.script.Fail {
		f := &in.script.Fail[i]
		if f.Operation != op {
			continue
		}
		at := max(first, f.LBA)
		if op == Flush {
			at = 0
		} else if at >= min(end, f.LBA+f.Blocks) {
			continue
		}
		if !in.fail[i].countMatch(f.Count) || err != nil && at >= lba {
			continue
		}
		lba, err = at, fmt.Errorf("%s of block %d: %w: %w", op, at, ErrInjected, errorOfStatus(f.Status))
		if op == Flush {
			err = fmt.Errorf("%s: %w: %w", op, ErrInjected, errorOfStatus(f.Status))
		}
	}
	if err == nil {
		return 0, nil
	}
	*[]*uint64{Read: &in.stats.Reads, Write: &in.stats.Writes, Flush: &in.stats.Flushes}[op]++
	return max(off, int64(lba)*size), err
}

// errorOfStatus returns the error from which the controller makes the status.
func errorOfStatus(s nvme.Status) error {
	if s == nvme.CapacityExceeded {
		return syscall.ENOSPC
	}
	return syscall.EIO
}

func (f *flash) ReadAt(p []byte, off int64) (int, error) {
	stop, fault := f.in.countTransfer(Read, off, int64(len(p)))
	if fault == nil {
		return f.Flash.ReadAt(p, off)
	}
	return f.transferBefore(f.Flash.ReadAt, p[:stop-off], off, fault)
}

func (f *flash) WriteAt(p []byte, off int64) (int, error) {
	stop, fault := f.in.countTransfer(Write, off, int64(len(p)))
	if fault == nil {
		return f.Flash.WriteAt(p, off)
	}
	return f.transferBefore(f.Flash.WriteAt, p[:stop-off], off, fault)
}

// transferBefore makes the part of a transfer that comes before the fault.
func (f *flash) transferBefore(do func([]byte, int64) (int, error), p []byte, off int64, fault error) (int, error) {
	f.in.log.Warn("fault: flash", "error", fault)
	if len(p) == 0 {
		return 0, fault
	}
	n, err := do(p, off)
	if err != nil {
		return n, err
	}
	return n, fault
}

func (f *flash) Discard(off, n int64) error {
	if _, fault := f.in.countTransfer(Write, off, n); fault != nil {
		f.in.log.Warn("fault: flash", "error", fault)
		return fault
	}
	return f.Flash.Discard(off, n)
}

func (f *flash) Sync() error {
	if _, fault := f.in.countTransfer(Flush, 0, 0); fault != nil {
		f.in.log.Warn("fault: flash", "error", fault)
		return fault
	}
	return f.Flash.Sync()
}
