package processor

import (
	"sync"

	"github.com/millrace/millrace/sdk/slicer"
)

// memoryShare is the part of a target's memory that one stream uses. Its workspace has one owner, the stream. Any
// goroutine may give back a lent buffer, also after the stream has ended and another stream has the share.
// returnBuffer puts the buffer aside, and the owner reclaims it before it goes on.
type memoryShare struct {
	workspace *slicer.Workspace
	// rest is the part of the share that the stream uses after a mini-batch or a page did not fit in workspace; nil: there
	// is none. Buffers of workspace may still be lent then, so that its memory is not used again.
	rest *memoryShare

	mu       sync.Mutex // guards returned
	returned []*slicer.Buffer
}

// returnBuffer puts aside a buffer that is no longer lent.
func (m *memoryShare) returnBuffer(s *slicer.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned = append(m.returned, s)
}

// reclaimBuffers makes the buffers that were put aside free again.
func (m *memoryShare) reclaimBuffers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.returned {
		m.workspace.Release(s)
	}
	m.returned = m.returned[:0]
}

// mayLend reports whether enough buffers stay free for a mini-batch to be lent.
func (m *memoryShare) mayLend() bool {
	m.reclaimBuffers()
	return m.workspace.FreeBuffers() >= freeBuffers
}
