package csd

import (
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// wasteShare is the share of the bytes that were moved in vain that counts for the next execution.
const wasteShare = 0.25

// maxStreams bounds how many streams' windows are known. Beyond it the reads of all of them are forgotten, and what
// they have not decoded counts as moved in vain.
const maxStreams = 256

// flashReads says which execution reads which bytes of flash.
//
// A host moves a window of a column chunk whole, with the first slice of it, and the window may hold many mini-batches.
// A device with double buffers would read the bytes of each slice while it computes the one before. So an execution
// counts the bytes that it decodes, in proportion where it ends inside a page, and not those that are moved with it.
// Bytes that no execution decodes are counted, too: those that lie in windows twice, and between the columns. A share
// of them counts for each execution, so that every byte that is moved counts once in the end.
type flashReads struct {
	mu      sync.Mutex
	moved   float64 // bytes that were moved so far
	counted float64 // Executions that have ended account for these bytes.
	undone  float64 // the sum of what the streams have not decoded yet
	streams map[uint64]map[uint32]float64
}

// bytesOfExecution returns the bytes of flash that are an execution's: of a slice with a result, of the stream whose
// result block lies at an address, for which moved bytes more were moved.
func (f *flashReads) bytesOfExecution(moved float64, stream uint64, s *program.Slice, r *program.Result) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved += moved
	columns := f.streams[stream]
	if columns == nil {
		if f.streams == nil || len(f.streams) == maxStreams {
			f.streams, f.undone = make(map[uint64]map[uint32]float64), 0
		}
		columns = make(map[uint32]float64)
		f.streams[stream] = columns
	}
	var decoded float64
	for i := range min(len(s.Tasks), len(r.Tasks)) {
		t := &s.Tasks[i]
		bytes, left := taskReads(t, &r.Tasks[i])
		decoded += bytes
		f.undone += left - columns[t.Column]
		columns[t.Column] = left
	}
	inVain := f.moved - f.undone - f.counted - decoded
	if inVain > 0 {
		inVain *= wasteShare
	}
	n := max(0, decoded+inVain)
	f.counted += n
	return n
}

// taskReads returns how many bytes of its chunk a task decoded, and how many it left in the window for later tasks.
func taskReads(t *program.Task, r *program.TaskResult) (decoded, left float64) {
	if t.Chunk.Absent || t.Chunk.Values == 0 {
		return 0, 0
	}
	// The values of a chunk are taken to be of one size, and the rows of a list as long as those of the task.
	rowBytes := float64(t.ChunkLen) / float64(t.Chunk.Values)
	if t.Chunk.MaxRep > 0 && r.Rows > 0 {
		rowBytes *= max(1, float64(r.Values)/float64(r.Rows))
	}
	inPage := rowBytes * float64(r.Cursor.Skip)
	if r.Page > 0 {
		inPage = min(inPage, float64(r.Page))
	}
	at := float64(r.Cursor.Page) + inPage
	decoded = max(0, at-float64(t.Cursor.Page)-rowBytes*float64(t.Cursor.Skip))
	end, begin := float64(t.WindowAt+t.Window.Len), float64(t.WindowAt)
	if page := float64(r.Page); r.Cursor.Unpacked && page > 0 {
		// The page lies unpacked beside the window, and later tasks take their rows from there.
		behind := float64(r.Cursor.Page) + page
		return decoded, page - inPage + max(0, end-max(behind, begin))
	}
	return decoded, max(0, end-max(at, begin))
}
