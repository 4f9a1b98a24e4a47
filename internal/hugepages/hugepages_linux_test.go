package hugepages

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestHugePages looks for the memory's mapping in the kernel's list, and at memory on both sides of the least size.
func TestHugePages(t *testing.T) {
	for _, size := range []uint64{0, 1, 64 << 10, Least - 1, Least, Least + 1, Least + Size - 1} {
		memory := Make(size)
		require.Len(t, memory, int(size))
		require.Equal(t, int(size), cap(memory))
		if size < Least {
			continue
		}
		at := uintptr(unsafe.Pointer(&memory[0]))
		require.Zero(t, at%Size)
		memory[0], memory[size-1] = 1, 1
		requireAdvised(t, at)
	}
}

// TestAdvise gives memory that begins and ends at any page.
func TestAdvise(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 3*Size+4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	Advise(nil)
	Advise(memory[4096:])
	requireAdvised(t, uintptr(unsafe.Pointer(&memory[4096])))
}

func requireAdvised(t *testing.T, at uintptr) {
	t.Helper()
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err == nil {
		require.Contains(t, flagsOfMapping(t, at), " hg")
	}
}

// flagsOfMapping returns the kernel's flags of the mapping that holds an address.
func flagsOfMapping(t *testing.T, at uintptr) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatalf("no mapping holds %#x", at)
	return ""
}
