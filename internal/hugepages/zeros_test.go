package hugepages

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeReturnsZeros makes memory, writes all of it and drops it, again and again: memory that the process wrote
// before, be it another job's rows or a key, is not in memory that is made later. The sizes end at a page and in one.
func TestMakeReturnsZeros(t *testing.T) {
	for range 8 {
		var pieces [4][]byte
		for i := range pieces {
			pieces[i] = Make(Least + uint64(i)*1001)
			for at, b := range pieces[i] {
				if b != 0 {
					require.Fail(t, "memory that was written before is handed out", "piece %d, byte %d", i, at)
				}
			}
		}
		for _, piece := range pieces {
			for i := range piece {
				piece[i] = 0xa5
			}
		}
		runtime.GC() // collects the pieces, which are not used below
	}
}
