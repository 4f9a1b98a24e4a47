package hugepages

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeClearsNothing makes memory where memory that was written lay before, and finds what was written there.
func TestMakeClearsNothing(t *testing.T) {
	written := bytes.Repeat([]byte{0xa5}, 4096)
	for range 100 {
		memory := Make(Least)
		for i := range memory {
			memory[i] = 0xa5
		}
		memory = nil
		runtime.GC()
		if again := Make(Least); bytes.Contains(again, written) {
			return
		}
	}
	require.Fail(t, "memory that was written before is cleared")
}
