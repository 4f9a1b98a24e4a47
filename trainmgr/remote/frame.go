package remote

import (
	"encoding/binary"
	"io"

	"github.com/millrace/millrace/internal/crc32c"
)

// credibleBytes is how long a node may say that a frame is before any of it has come, and memory is found for all of
// it.
const credibleBytes = 16 << 20

// readFrame reads a frame of so many bytes into a buffer of the pool, and makes the CRC32C of its data on the way. Of a
// frame that is said to be far longer than any that has come, memory for the rest is found when the first part is here:
// to say a number costs a node nothing.
func (p *buffers) readFrame(r io.Reader, length int) (buf []byte, crc uint32, err error) {
	buf = p.get(min(length, p.credible()))
	s := newFrameSum(length)
	for {
		if err := s.fill(r, buf); err != nil {
			p.put(buf)
			return nil, 0, err
		}
		if len(buf) == length {
			p.came(length)
			return buf, s.crc, nil
		}
		longer := p.get(min(length, 4*len(buf)))
		copy(longer, buf)
		p.put(buf)
		buf = longer
	}
}

// credible returns how many bytes are believed before they come.
func (p *buffers) credible() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(credibleBytes, 2*p.largest)
}

// came notes that a frame has come whole.
func (p *buffers) came(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = max(p.largest, n)
}

// part is how much of a frame is read and summed at a time: it stays in the second-level cache.
const part = 256 << 10

// frameSum makes the CRC32C of a frame's data while it is read. What is not a frame has any sum: reading the frame says
// what is wrong with it.
type frameSum struct {
	at     int    // bytes read
	length int    // of the frame
	data   uint64 // where its data begins, once that is known
	crc    uint32
}

func newFrameSum(length int) *frameSum { return &frameSum{length: length, data: uint64(length)} }

// fill reads until buf, which begins with what was read before, is full.
func (s *frameSum) fill(r io.Reader, buf []byte) error {
	for s.at < len(buf) {
		end := min(s.at+part, len(buf))
		switch _, err := io.ReadFull(r, buf[s.at:end]); err {
		case nil:
		case io.EOF:
			return io.ErrUnexpectedEOF // the frame has more
		default:
			return err
		}
		if s.at == 0 && end >= 8 {
			if n := binary.LittleEndian.Uint64(buf); n <= uint64(s.length) {
				s.data = n + 8
			}
		}
		if from := max(uint64(s.at), s.data); from < uint64(end) {
			s.crc = crc32c.Update(s.crc, buf[from:end])
		}
		s.at = end
	}
	return nil
}
