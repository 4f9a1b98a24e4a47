//go:build !purego

package simd

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessorIsWhatLinuxSays: Linux reads vendor and family by the same instruction.
func TestProcessorIsWhatLinuxSays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc/cpuinfo")
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	vendor, family := processor()
	require.Equal(t, string(regexp.MustCompile(`vendor_id\s*: (\S+)`).FindSubmatch(info)[1]), vendor)
	require.Equal(t, string(regexp.MustCompile(`cpu family\s*: (\d+)`).FindSubmatch(info)[1]),
		strconv.Itoa(int(family)))
}
