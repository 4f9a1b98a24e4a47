package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// Bounds of the maps: outstanding commands, of which the oldest are dropped first, and cells, of which a histogram has
// about twenty.
const (
	maxCommands = 16 << 10
	maxCells    = 8 << 10
)

// licence is the licence of the programs, which the kernel asks for.
const licence = "Apache-2.0"

// Watcher counts commands until Close.
type Watcher struct {
	cells *ebpf.Map
	parts []io.Closer // last made, first closed

	closing sync.Once
	closed  error
}

// Watch begins to time NVMe commands.
func Watch() (*Watcher, error) {
	w, err := watch([]string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ebpf.ErrNotSupported) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return nil, fmt.Errorf("watch NVMe commands: %w", err)
	}
	return w, nil
}

// recordFields reads where a tracepoint's record has its values.
func recordFields(folders []string, name string, names ...string) ([]field, error) {
	var failed error
	for _, folder := range folders {
		b, err := os.ReadFile(filepath.Join(folder, "events/nvme", name, "format"))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		all, err := parseFormat(string(b))
		if err != nil {
			return nil, fmt.Errorf("tracepoint %s: %w", name, err)
		}
		list, err := selectFields(all, names...)
		if err != nil {
			return nil, fmt.Errorf("tracepoint %s: %w", name, err)
		}
		return list, nil
	}
	return nil, fmt.Errorf("tracepoint %s (the NVMe driver's; tracefs must be mounted): %w", name, failed)
}

func watch(folders []string) (_ *Watcher, err error) {
	w := &Watcher{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	start, err := recordFields(folders, "nvme_setup_cmd", "ctrl_id", "qid", "cid", "opcode")
	if err != nil {
		return nil, err
	}
	end, err := recordFields(folders, "nvme_complete_rq", "ctrl_id", "qid", "cid")
	if err != nil {
		return nil, err
	}
	// Kernels before 5.11 count maps against a limit. Where the limit cannot be raised, it may be high enough.
	_ = rlimit.RemoveMemlock()
	commands, err := w.newMap(&ebpf.MapSpec{Name: "commands", Type: ebpf.LRUHash, KeySize: sizeKey,
		ValueSize: sizeStart, MaxEntries: maxCommands})
	if err != nil {
		return nil, err
	}
	if w.cells, err = w.newMap(&ebpf.MapSpec{Name: "cells", Type: ebpf.Hash, KeySize: sizeCell, ValueSize: sizeValue,
		MaxEntries: maxCells}); err != nil {
		return nil, err
	}
	// Completions are attached first, so that every command that is recorded is removed again.
	if err := w.attach("nvme_complete_rq", completionProgram(end, commands.FD(), w.cells.FD())); err != nil {
		return nil, err
	}
	if err := w.attach("nvme_setup_cmd", setupProgram(start, commands.FD())); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Watcher) newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make map %s (wants root, or CAP_BPF and CAP_PERFMON): %w", spec.Name, err)
	}
	w.parts = append(w.parts, m)
	return m, nil
}

func (w *Watcher) attach(name string, ins asm.Instructions) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.TracePoint, Instructions: ins, License: licence})
	if err != nil {
		return fmt.Errorf("load the program of %s: %w", name, err)
	}
	w.parts = append(w.parts, p)
	l, err := link.Tracepoint("nvme", name, p, nil)
	if err != nil {
		return fmt.Errorf("attach to %s: %w", name, err)
	}
	w.parts = append(w.parts, l)
	return nil
}

// Read returns the latencies that were counted since Watch.
func (w *Watcher) Read() ([]Histogram, error) {
	var k [sizeCell]byte
	var v [sizeValue]byte
	var cells []cell
	ne := binary.NativeEndian
	all := w.cells.Iterate()
	for all.Next(&k, &v) {
		cells = append(cells, cell{ne.Uint32(k[:]), ne.Uint32(k[4:]), ne.Uint64(v[:]), ne.Uint64(v[8:])})
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read what was counted: %w", err)
	}
	return assemble(cells), nil
}

// Close stops the counting. Further calls return the same error.
func (w *Watcher) Close() error {
	w.closing.Do(func() {
		var errs []error
		for i := len(w.parts) - 1; i >= 0; i-- {
			errs = append(errs, w.parts[i].Close())
		}
		w.closed = errors.Join(errs...)
	})
	return w.closed
}
