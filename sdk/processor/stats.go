package processor

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// Stats counts a processor's work since it was made. Times are sums over streams, so that they may exceed the time
// that passed.
type Stats struct {
	Rows      int64 // The rows of fragments that were handed on.
	Fragments int64 // The fragments that were handed on; a whole mini-batch is one.
	Slices    int64 // executions
	Reissued  int64 // executions that ended because a window, dictionary or room was too small
	Dropped   int64 // malformed rows of text left out

	BytesPlanned int64 // The planned moves. The drive's own counters must agree.
	BytesNeeded  int64 // The bytes that the fragments that were handed on need, see slicer.Done.
	BytesReread  int64 // The planned bytes that were moved before.
	BytesStored  int64 // The planned bytes that the host read and stored in the device's memory.
	BytesAhead   int64 // What was stored while the device executed an earlier slice.
	BytesIn      int64 // window bytes decoded, as the engine counts them
	BytesOut     int64 // tensor bytes written, as the engine counts them
	BytesFetched int64 // tensor bytes copied out of the device
	BytesLent    int64 // tensor bytes lent

	Wait      time.Duration // for an engine thread
	Move      time.Duration // moving windows
	Decode    time.Duration
	Transform time.Duration
	Fetch     time.Duration // reading results and tensors
}

// BytesUnneeded returns how many of the planned bytes no fragment that was handed on needed: gaps between chunks, ends
// of blocks, pages and dictionaries of which a run has a part of the rows and which the runs beside it read too, bytes
// that were moved again, and those of fragments that were dropped. Over a whole epoch, BytesPlanned less BytesUnneeded
// is the size of the column chunks that the pipeline reads. It is 0 where the bytes needed are more than those planned,
// since a few rows of a chunk may lie in pages with fewer bytes a row than the chunk has.
func (s Stats) BytesUnneeded() int64 { return max(s.BytesPlanned-s.BytesNeeded, 0) }

// counters are the numbers of Stats, as streams count them.
type counters struct {
	rows, fragments, slices, reissued, dropped                                         atomic.Int64
	bytesPlanned, bytesNeeded, bytesReread, bytesIn, bytesOut, bytesFetched, bytesLent atomic.Int64
	bytesStored, bytesAhead                                                            atomic.Int64
	wait, move, decode, transform, fetch                                               atomic.Int64
}

func (c *counters) snapshot() Stats {
	return Stats{
		Rows: c.rows.Load(), Fragments: c.fragments.Load(), Slices: c.slices.Load(), Reissued: c.reissued.Load(),
		Dropped:      c.dropped.Load(),
		BytesPlanned: c.bytesPlanned.Load(), BytesNeeded: c.bytesNeeded.Load(), BytesReread: c.bytesReread.Load(),
		BytesStored: c.bytesStored.Load(), BytesAhead: c.bytesAhead.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		BytesFetched: c.bytesFetched.Load(), BytesLent: c.bytesLent.Load(),
		Wait: time.Duration(c.wait.Load()), Move: time.Duration(c.move.Load()), Decode: time.Duration(c.decode.Load()),
		Transform: time.Duration(c.transform.Load()), Fetch: time.Duration(c.fetch.Load()),
	}
}

// countHandedOn counts a fragment, or a whole mini-batch, that the consumer took, and the bytes that it needed.
func (c *counters) countHandedOn(m *tensor.MiniBatch, needed int64) {
	c.rows.Add(int64(m.Rows))
	c.fragments.Add(1)
	c.bytesNeeded.Add(needed)
}

// countTraffic counts a slice that was sent, with its moves. fed says that the host made the moves: it
// read the windows and stored them.
func (c *counters) countTraffic(t slicer.Traffic, fed bool) {
	c.slices.Add(1)
	c.bytesPlanned.Add(int64(t.Planned))
	c.bytesReread.Add(int64(t.Reread))
	if fed {
		c.bytesStored.Add(int64(t.Planned))
		c.bytesAhead.Add(int64(t.Ahead))
	}
}

// countResult counts the result of a slice.
func (c *counters) countResult(o target.Outcome, res *program.Result) {
	nanoseconds := func(n uint64) int64 { return int64(min(n, math.MaxInt64/2)) }
	c.wait.Add(int64(o.Wait) + nanoseconds(res.Wait))
	c.move.Add(int64(o.Move) + nanoseconds(res.Move))
	c.decode.Add(nanoseconds(res.Decode))
	c.transform.Add(nanoseconds(res.Transform))
	c.bytesIn.Add(int64(res.BytesIn))
	c.bytesOut.Add(int64(res.BytesOut))
	c.dropped.Add(int64(res.Dropped))
	if res.State != program.Done {
		c.reissued.Add(1)
	}
}

// Sub returns the work since earlier.
func (s Stats) Sub(earlier Stats) Stats {
	return s.combine(earlier, func(a, b int64) int64 { return a - b })
}

// Add returns the sum of both.
func (s Stats) Add(o Stats) Stats { return s.combine(o, func(a, b int64) int64 { return a + b }) }

// Share returns the work for a number of its rows, on the assumption that all rows take the same work.
func (s Stats) Share(rows int64) Stats {
	if rows >= s.Rows {
		return s
	}
	part := float64(rows) / float64(s.Rows)
	return s.combine(s, func(a, _ int64) int64 { return int64(math.Round(float64(a) * part)) })
}

// combine combines each number with the same number of o.
func (s Stats) combine(o Stats, combine func(a, b int64) int64) Stats {
	s.Rows = combine(s.Rows, o.Rows)
	s.Fragments = combine(s.Fragments, o.Fragments)
	s.Slices = combine(s.Slices, o.Slices)
	s.Reissued = combine(s.Reissued, o.Reissued)
	s.Dropped = combine(s.Dropped, o.Dropped)
	s.BytesPlanned = combine(s.BytesPlanned, o.BytesPlanned)
	s.BytesNeeded = combine(s.BytesNeeded, o.BytesNeeded)
	s.BytesReread = combine(s.BytesReread, o.BytesReread)
	s.BytesStored = combine(s.BytesStored, o.BytesStored)
	s.BytesAhead = combine(s.BytesAhead, o.BytesAhead)
	s.BytesIn = combine(s.BytesIn, o.BytesIn)
	s.BytesOut = combine(s.BytesOut, o.BytesOut)
	s.BytesFetched = combine(s.BytesFetched, o.BytesFetched)
	s.BytesLent = combine(s.BytesLent, o.BytesLent)
	s.Wait = time.Duration(combine(int64(s.Wait), int64(o.Wait)))
	s.Move = time.Duration(combine(int64(s.Move), int64(o.Move)))
	s.Decode = time.Duration(combine(int64(s.Decode), int64(o.Decode)))
	s.Transform = time.Duration(combine(int64(s.Transform), int64(o.Transform)))
	s.Fetch = time.Duration(combine(int64(s.Fetch), int64(o.Fetch)))
	return s
}
