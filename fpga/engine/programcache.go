package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
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
// does not have it. It compiles under the lock, so that threads that begin a job together compile its program once, and
// gives up when ctx ends.
func (c *programCache) compiledFor(
	ctx context.Context, s *program.Slice, mem []byte, e *Engine,
) (*compiledProgram, error) {
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
		return nil, failure.Slice("a program of %d bytes in a range of %d", s.Program, len(mem))
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
	p, err := operator.Unmarshal(b)
	if err != nil {
		return nil, programError(err)
	}
	if err := p.Validate(); err != nil {
		return nil, programError(err)
	}
	compiled, err := compileProgram(ctx, p, e.units, e.modules)
	if err != nil && ctx.Err() != nil {
		return nil, failure.New(program.Idle, context.Cause(ctx))
	}
	if errors.Is(err, format.ErrModule) { // it would be refused by every other engine, too
		return nil, failure.New(program.NoSupport, err)
	}
	if err != nil {
		return nil, programError(err)
	}
	c.entries = slices.Insert(c.entries, 0, cachedProgram{s.Digest, compiled})
	c.evict()
	return compiled, nil
}

// evict drops the programs that were used longest ago, until the others are within the limits. An executor may still
// run one of them, so its functions are freed with the garbage.
func (c *programCache) evict() {
	bytes := uint64(0)
	for i := range c.entries {
		bytes += c.entries[i].program.threadBytes
		if i == c.size || bytes > format.MaxProgramBytes {
			clear(c.entries[i:])
			c.entries = c.entries[:i]
			return
		}
	}
}

// programError is the error of a program that cannot run.
func programError(err error) error { return failure.New(program.BadProgram, err) }
