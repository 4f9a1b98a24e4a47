//go:build !purego

package simd

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Linux reads the same instruction.
func TestProcessorIsWhatLinuxSays(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	vendor, family := processor()
	require.Equal(t, string(regexp.MustCompile(`vendor_id\s*: (\S+)`).FindSubmatch(info)[1]), vendor)
	require.Equal(t, string(regexp.MustCompile(`cpu family\s*: (\d+)`).FindSubmatch(info)[1]),
		strconv.Itoa(int(family)))
}
