package health

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/dswarbrick/smart/nvme"
)

// CrossCheck makes github.com/dswarbrick/smart read the log of the controller whose device is path, as /dev/nvme0,
// and returns the differences from r, which was read before. No difference means agreement.
func CrossCheck(path string, r *SMARTLog) ([]string, error) {
	var text bytes.Buffer
	err := withFixedStack(func() error {
		d := nvme.NewNVMeDevice(path)
		if err := d.Open(); err != nil {
			return err
		}
		// PrintSMART identifies the controller and namespace 1 first. It treats a command that the drive refused as one
		// that succeeded, and then prints zeros, which disagree.
		err := d.PrintSMART(nil, &text)
		if closed := d.Close(); err == nil {
			err = closed
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cross-check %s: %w", path, err)
	}
	list, err := disagreements(r, &text)
	slices.Sort(list)
	return list, err
}

// collectorMu lets one call at a time change the garbage collector's settings.
var collectorMu sync.Mutex

// withFixedStack runs f on a stack that does not move. The library hands addresses of its stack to the kernel as
// numbers, which Go's runtime does not correct when it moves a stack. The runtime moves a stack to grow it, and to
// shrink it in a garbage collection. So the stack is grown before f runs, and no collection begins while it runs.
func withFixedStack(f func() error) error {
	collectorMu.Lock()
	defer collectorMu.Unlock()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(math.MaxInt64)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	runtime.GC() // a collection that is running has ended when this returns
	done := make(chan error)
	go func() {
		growStack()
		done <- f()
	}()
	return <-done
}

// growStack makes the stack larger than the library needs.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	useStack(&room)
}

//go:noinline
func useStack(b *[64 << 10]byte) { b[len(b)-1] = 1 }
