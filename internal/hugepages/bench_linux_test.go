package hugepages

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkNewMemory writes to memory that the process did not have before, 2 GiB each time, and reports the least, the
// median and the greatest time that the kernel takes for a huge page, of groups of 64. On a virtual machine whose host
// takes free pages back the greatest is a multiple of the least.
func BenchmarkNewMemory(b *testing.B) {
	const size, group = 2 << 30, 64 * Size
	var took []time.Duration
	for b.Loop() {
		all, err := unix.Mmap(-1, 0, size+Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			b.Fatal(err)
		}
		memory := all[-uint64(uintptr(unsafe.Pointer(&all[0])))%Size:][:size]
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
		for begin := 0; begin < size; begin += group {
			start := time.Now()
			for at := begin; at < begin+group; at += 4096 {
				memory[at] = 1
			}
			took = append(took, time.Since(start)/64)
		}
		if err := unix.Munmap(all); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	for unit, d := range map[string]time.Duration{
		"least-us/page": took[0], "median-us/page": took[len(took)/2], "greatest-us/page": took[len(took)-1],
	} {
		b.ReportMetric(float64(d.Nanoseconds())/1e3, unit)
	}
}
