package slm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/cs"
)

// lendingFlash lends its bytes for good.
type lendingFlash []byte

func (f lendingFlash) ReadAt(p []byte, off int64) (int, error)  { return copy(p, f[off:]), nil }
func (f lendingFlash) Lend(off, n int64) ([]byte, uint64, bool) { return f[off : off+n], 1, true }
func (f lendingFlash) Lasts(term uint64) bool                   { return term == 1 }

// TestRunsThatFollowEachOtherAreOne lends a window in pieces: an execution reads it in one, and none is copied.
func TestRunsThatFollowEachOtherAreOne(t *testing.T) {
	flash := make(lendingFlash, 16<<10)
	for i := range flash {
		flash[i] = byte(i / 512)
	}
	m := New(make([]byte, 16<<10), []int{1}, zero)
	var moved uint64
	m.Lent.From(flash, func(n uint64) { moved += n }, nil)
	require.True(t, m.Lent.Lend(4096, 1024, 2048))
	require.True(t, m.Lent.Lend(4096+2048, 1024+2048, 2048))
	assert.Len(t, m.Lent.runs, 1)
	in, st := m.Lent.Begin([]cs.Range{{Addr: 4096, Len: 4096}}, 0)
	require.True(t, st.OK())
	assert.Equal(t, []byte(flash[1024:1024+4096]), in.Bytes(0, 4096))
	assert.Zero(t, moved)
	m.Lent.End(in)
	m.Lent.Recall()
	assert.EqualValues(t, 4096, moved)
	assert.Empty(t, m.Lent.runs)
}
