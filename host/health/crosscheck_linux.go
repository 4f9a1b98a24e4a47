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

// CrossCheck has github.com/dswarbrick/smart read the log of the controller whose device is path, as /dev/nvme0, and
// says what it tells otherwise than r, which was read before. None is agreement.
func CrossCheck(path string, r *SMARTLog) ([]string, error) {
	var text bytes.Buffer
	err := steady(func() error {
		d := nvme.NewNVMeDevice(path)
		if err := d.Open(); err != nil {
			return err
		}
		// It identifies controller and namespace 1 first, and takes a command that the drive refused for one that
		// succeeded: then it prints zeros, which disagree.
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

// alone lets one call at a time change the collector's settings.
var alone sync.Mutex

// steady runs f on a stack that does not move. The library hands addresses of its stack to the kernel as numbers, which
// Go's runtime does not correct when it moves a stack: to grow it, or to shrink it in a collection. So the stack is
// grown before, and no collection begins meanwhile.
func steady(f func() error) error {
	alone.Lock()
	defer alone.Unlock()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(math.MaxInt64)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	runtime.GC() // so that one which runs has ended
	done := make(chan error)
	go func() {
		grow()
		done <- f()
	}()
	return <-done
}

// grow makes the stack larger than the library needs.
//
//go:noinline
func grow() {
	var room [64 << 10]byte
	use(&room)
}

//go:noinline
func use(b *[64 << 10]byte) { b[len(b)-1] = 1 }
