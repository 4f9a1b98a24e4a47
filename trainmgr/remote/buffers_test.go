package remote

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBuffersFollowTheSizeOfFrames: frames of a later epoch may be longer than those that filled the pool.
func TestBuffersFollowTheSizeOfFrames(t *testing.T) {
	const small, large = 1 << 20, 2 << 20
	p := newBuffers(4 * large)
	var lent [][]byte
	for range 8 {
		lent = append(lent, p.get(small))
	}
	for _, b := range lent {
		p.put(b)
	}
	require.Equal(t, int64(8*small), p.taken(), "the pool is full")
	first := p.get(large)
	p.put(first)
	assert.Equal(t, int64(4*large), p.taken(), "and stays within its bound")
	assert.Same(t, unsafe.SliceData(first), unsafe.SliceData(p.get(large)), "the memory is lent again")
	assert.Equal(t, int64(6*small), p.taken())
	p.put(make([]byte, 4*large+1))
	assert.Equal(t, int64(6*small), p.taken(), "a buffer above the bound drops no other")
}

// TestABufferThatIsNotGivenBackIsNotKept: the garbage collector takes it, as a mini-batch that nobody releases.
func TestABufferThatIsNotGivenBackIsNotKept(t *testing.T) {
	const size = 1 << 20
	p := newBuffers(2 * size)
	one, two := p.get(size), p.get(size)
	p.put(one)
	p.put(two)
	lent := weak.Make(&p.get(size)[0])
	require.Eventually(t, func() bool {
		runtime.GC()
		return lent.Value() == nil
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, int64(size), p.taken())
}
