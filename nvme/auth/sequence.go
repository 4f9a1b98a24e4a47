package auth

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
)

// Sequence numbers challenges: it starts at random, counts up, and is never 0, which in a message means that there is
// no challenge. The zero Sequence works; it is safe for concurrent use. A target shares one among its queues.
type Sequence struct {
	mu   sync.Mutex
	last uint32
}

// Next is the number of the next challenge.
func (s *Sequence) Next() (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 {
		var b [4]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, fmt.Errorf("draw a sequence number: %w", err)
		}
		s.last = binary.LittleEndian.Uint32(b[:])
	}
	s.last++
	if s.last == 0 {
		s.last = 1
	}
	return s.last, nil
}
