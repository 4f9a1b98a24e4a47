package engine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// programCache keeps compiled programs by digest, the most recently used one first. A digest names its content, so
// an entry never goes stale. A host that knows the digest of a program may run it.
type programCache struct {
	size int

	mu      sync.Mutex
	entries []cachedProgram // guarded by mu; at most size
}

type cachedProgram struct {
	digest  [sha256.Size]byte
	program *compiledProgram
}

// compiledFor returns the slice's program, compiled. It reads the program from mem, the program range, if the cache
// does not have it. It compiles under the lock, so that threads that begin a job together compile its program once.
func (c *programCache) compiledFor(s *program.Slice, mem []byte, e *Engine) (*compiledProgram, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.entries {
		if c.entries[i].digest == s.Digest {
			entry := c.entries[i]
			copy(c.entries[1:i+1], c.entries[:i])
			c.entries[0] = entry
			return entry.program, nil
		}
	}
	switch {
	case s.Program > uint64(len(mem)):
		return nil, sliceError("a program of %d bytes in a range of %d", s.Program, len(mem))
	case s.Program > program.MaxSize:
		return nil, programError(fmt.Errorf("a program of %d bytes, want at most %d", s.Program, program.MaxSize))
	}
	// A copy, because other hosts share the cache: a host that writes its range meanwhile must not get another program
	// than the digest names into it.
	b := bytes.Clone(mem[:s.Program])
	if got := sha256.Sum256(b); got != s.Digest {
		return nil, programError(fmt.Errorf("the program range holds %x, the slice wants %x: store the program first",
			got[:8], s.Digest[:8]))
	}
	p, err := program.Unmarshal(b)
	if err != nil {
		return nil, programError(err)
	}
	if err := p.Validate(); err != nil {
		return nil, programError(err)
	}
	compiled, err := compileProgram(p, e.units, e.modules)
	if err != nil {
		return nil, programError(err)
	}
	if len(c.entries) < c.size {
		c.entries = append(c.entries, cachedProgram{})
	}
	copy(c.entries[1:], c.entries)
	c.entries[0] = cachedProgram{s.Digest, compiled}
	return compiled, nil
}

// programError is the error of a program that cannot run.
func programError(err error) error { return &stateError{program.BadProgram, err} }
