package remote

import (
	"encoding/binary"
	"io"

	"github.com/millrace/millrace/internal/crc32c"
)

// credibleBytes is the length of a frame for which readFrame allocates memory before any of the frame has come.
const credibleBytes = 16 << 20

// readFrame reads a frame of that length into a buffer of the pool, and computes the CRC32C of the frame's data on the
// way. A node can claim any length. If the frame is said to be far longer than every frame so far, readFrame allocates
// memory for the rest when the first part has come.
func (p *buffers) readFrame(r io.Reader, length int) (buf []byte, crc uint32, err error) {
	buf = p.get(min(length, p.credible()))
	s := newFrameSum(length)
	for {
		if err := s.fill(r, buf); err != nil {
			p.put(buf)
			return nil, 0, err
		}
		if len(buf) == length {
			p.noteLength(length)
			return buf, s.crc, nil
		}
		longer := p.get(min(length, 4*len(buf)))
		copy(longer, buf)
		p.put(buf)
		buf = longer
	}
}

// credible returns the length of a frame for which memory is allocated before any of the frame has come.
func (p *buffers) credible() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(credibleBytes, 2*p.largest)
}

// noteLength notes the length of a frame that has come whole.
func (p *buffers) noteLength(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = max(p.largest, n)
}

// readBytes is how much of a frame is read and summed at a time: it stays in the second-level cache.
const readBytes = 256 << 10

// frameSum computes the CRC32C of a frame's data while the frame is read. Bytes that are no frame have an arbitrary
// sum; tensor.ReadFrameOf refuses them.
type frameSum struct {
	read      int    // bytes so far
	length    int    // length is that of the whole frame.
	dataStart uint64 // offset of the frame's data; length until it is known
	crc       uint32
}

func newFrameSum(length int) *frameSum { return &frameSum{length: length, dataStart: uint64(length)} }

// fill reads until buf is full. buf begins with the bytes that were read before.
func (s *frameSum) fill(r io.Reader, buf []byte) error {
	for s.read < len(buf) {
		end := min(s.read+readBytes, len(buf))
		switch _, err := io.ReadFull(r, buf[s.read:end]); err {
		case nil:
		case io.EOF:
			return io.ErrUnexpectedEOF // the frame has more
		default:
			return err
		}
		if s.read == 0 && end >= 8 {
			if header := binary.LittleEndian.Uint64(buf); header <= uint64(s.length) {
				s.dataStart = header + 8
			}
		}
		if from := max(uint64(s.read), s.dataStart); from < uint64(end) {
			s.crc = crc32c.Update(s.crc, buf[from:end])
		}
		s.read = end
	}
	return nil
}
