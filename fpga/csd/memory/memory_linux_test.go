package memory

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/hugepages"
)

// TestClearingTakesNoRoom: memory of an earlier user is cleared wherever a span begins and ends, with huge pages and
// without, and what nobody wrote to takes up no room after it.
func TestClearingTakesNoRoom(t *testing.T) {
	const size, page = 16 << 20, 4096
	held := func(m []byte) (n int) {
		for _, p := range pageResidence(m) {
			n += int(p & 1)
		}
		return n * page
	}
	for _, huge := range []bool{false, true} {
		for _, span := range [][2]int{{0, size}, {1, 2}, {100, 9000}, {page, 2 * page}, {3 << 20, 9<<20 + 5}, {5, 5}} {
			m, free, err := Map(size)
			require.NoError(t, err)
			if huge {
				hugepages.Advise(m)
			}
			want := make([]byte, size)
			for _, at := range []int{0, 1, 4096, 5000, 3<<20 - 1, 3 << 20, 9 << 20, 9<<20 + 6, size - 1} {
				m[at], want[at] = 7, 7
			}
			clear(want[span[0]:span[1]])
			before := held(m)
			ClearUsed(m[span[0]:span[1]])
			assert.LessOrEqual(t, held(m), before+2*page, "the pages that a span covers in part are written")
			require.Less(t, before, size, "the test leaves memory that nobody wrote to")
			require.True(t, bytes.Equal(want, m), "%v, %t", span, huge)
			require.NoError(t, free())
		}
	}
}
