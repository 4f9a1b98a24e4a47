package partition

import (
	"sort"
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// maxResumePoints bounds the resume points of a partition, some 64 bytes each.
const maxResumePoints = 1 << 16

// ResumePoint is a place between two rows of a column chunk that an engine came by.
type ResumePoint struct {
	Row     int64          // row of the row group
	Cursor  program.Cursor // without flags: nothing of the chunk lies in memory
	PageRow int64          // first row that begins in the cursor's page
	HasDict bool           // the chunk has a dictionary
}

// resumePoints are the places of a partition that streams came by, so that the next stream need not walk there from
// the chunk's beginning: pages of lists do not say how many rows they have. Every cursor in it came from an engine.
type resumePoints struct {
	mu      sync.Mutex // guards what follows
	byChunk map[chunkID][]ResumePoint
	count   int
}

// chunkID names a column chunk of a partition.
type chunkID struct{ group, leaf int }

// NoteResumePoint remembers a place in the chunk of a leaf in a row group, where there is room and the row is not
// known.
func (p *Partition) NoteResumePoint(group, leaf int, at ResumePoint) {
	r := &p.resume
	r.mu.Lock()
	defer r.mu.Unlock()
	id := chunkID{group, leaf}
	list := r.byChunk[id]
	i := sort.Search(len(list), func(i int) bool { return list[i].Row >= at.Row })
	if i < len(list) && list[i].Row == at.Row || r.count >= maxResumePoints {
		return
	}
	list = append(list, ResumePoint{})
	copy(list[i+1:], list[i:])
	list[i] = at
	if r.byChunk == nil {
		r.byChunk = map[chunkID][]ResumePoint{}
	}
	r.byChunk[id] = list
	r.count++
}

// ResumePointBefore returns the last place known in a chunk at or before a row of the row group.
func (p *Partition) ResumePointBefore(group, leaf int, row int64) (ResumePoint, bool) {
	r := &p.resume
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.byChunk[chunkID{group, leaf}]
	i := sort.Search(len(list), func(i int) bool { return list[i].Row > row }) - 1
	if i < 0 {
		return ResumePoint{}, false
	}
	return list[i], true
}
