package remote

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readSummed fills buf with a whole frame and returns its sum.
func readSummed(r io.Reader, buf []byte) (crc uint32, err error) {
	s := newFrameSum(len(buf))
	err = s.fill(r, buf)
	return s.crc, err
}

// taken is the bytes of memory that a pool has free.
func (p *buffers) taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeBytes
}

// TestALengthThatIsOnlyClaimed: a frame whose claimed length exceeds its bytes takes at most credibleBytes of memory,
// or at most six times that once 20 MiB have come.
func TestALengthThatIsOnlyClaimed(t *testing.T) {
	p := newBuffers(4 << 30)
	_, _, err := p.readFrame(strings.NewReader("a few bytes"), maxFrame)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.LessOrEqual(t, p.taken(), int64(credibleBytes))
	_, _, err = p.readFrame(bytes.NewReader(make([]byte, 20<<20)), maxFrame)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.LessOrEqual(t, p.taken(), int64(6*credibleBytes), "more once some has come")
}

// TestALongFrameComesWhole, in the steps in which its memory grows, with the sum of a frame that is read at once; the
// next as long is read at once.
func TestALongFrameComesWhole(t *testing.T) {
	frame := make([]byte, 3*credibleBytes+12345)
	for i := range frame {
		frame[i] = byte(i * 7 >> 3)
	}
	copy(frame, []byte{56, 0, 0, 0, 0, 0, 0, 0})
	want, err := readSummed(bytes.NewReader(frame), make([]byte, len(frame)))
	require.NoError(t, err)
	p := newBuffers(1 << 30)
	for range 2 {
		got, crc, err := p.readFrame(bytes.NewReader(frame), len(frame))
		require.NoError(t, err)
		assert.Equal(t, want, crc)
		require.True(t, bytes.Equal(frame, got))
		p.put(got)
	}
	assert.GreaterOrEqual(t, p.credible(), len(frame))
}
