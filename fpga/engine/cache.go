package engine

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// cache keeps compiled programs by digest, the last used first. A digest names its content, so an entry never goes
// stale; whoever knows the digest of a program may run it.
type cache struct {
	size int

	mu      sync.Mutex
	entries []entry // guarded by mu; at most size
}

type entry struct {
	digest  [sha256.Size]byte
	program *compiled
}

// get returns the slice's program, compiled; from mem, the program range, when it is not kept. Compiling holds the lock:
// threads that start a job together wait for one of them to do it.
func (c *cache) get(s *program.Slice, mem []byte, units []program.UnitRef) (*compiled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.entries {
		if c.entries[i].digest == s.Digest {
			e := c.entries[i]
			copy(c.entries[1:i+1], c.entries[:i])
			c.entries[0] = e
			return e.program, nil
		}
	}
	if s.Program > uint64(len(mem)) {
		return nil, badSlice("a program of %d bytes in a range of %d", s.Program, len(mem))
	}
	b := mem[:s.Program]
	if got := sha256.Sum256(b); got != s.Digest {
		return nil, badProgram(fmt.Errorf("the program range holds %x, the slice wants %x: store the program first", got[:8], s.Digest[:8]))
	}
	p, err := program.Unmarshal(b)
	if err != nil {
		return nil, badProgram(err)
	}
	if err := p.Validate(); err != nil {
		return nil, badProgram(err)
	}
	prog, err := compile(p, units)
	if err != nil {
		return nil, badProgram(err)
	}
	if len(c.entries) < c.size {
		c.entries = append(c.entries, entry{})
	}
	copy(c.entries[1:], c.entries)
	c.entries[0] = entry{s.Digest, prog}
	return prog, nil
}

func badProgram(err error) error { return &fault{program.BadProgram, err} }
