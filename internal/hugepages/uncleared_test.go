package hugepages

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeClearsNothing makes memory, writes all of it and drops it, again and again, until it finds what was written
// in memory that was made later. Which memory that is, and when the runtime returns memory to the system, is not known.
func TestMakeClearsNothing(t *testing.T) {
	written := bytes.Repeat([]byte{0xa5}, 4096)
	for range 100 {
		var pieces [4][]byte
		for i := range pieces {
			pieces[i] = Make(Least)
			if bytes.Contains(pieces[i], written) {
				return
			}
		}
		for _, piece := range pieces {
			for i := range piece {
				piece[i] = 0xa5
			}
		}
		runtime.GC() // collects the pieces, which are not used below
	}
	require.Fail(t, "memory that was written before is cleared")
}
