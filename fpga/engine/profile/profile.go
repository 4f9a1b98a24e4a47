// Package profile measures how often each unit of an engine ran, and for how long.
package profile

import (
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// UnitTime is the work of one unit. A run is one block of one column through one operator, or out of one decoder
// (text: all columns of a block of rows; Parquet: a decoded dictionary is a run too). Times are in nanoseconds.
type UnitTime struct {
	Runs, Values             uint64
	Total, Shortest, Longest uint64
	// Lengths and Bytes are of a decoder of columns: the lengths of lists that it yielded beside the values, and the bytes
	// of both in the types of the file. Dictionaries are not in Bytes.
	Lengths, Bytes uint64
}

// AddRun counts a run of ns nanoseconds over a number of values.
func (t *UnitTime) AddRun(ns, values uint64) {
	if t.Runs == 0 || ns < t.Shortest {
		t.Shortest = ns
	}
	t.Longest = max(t.Longest, ns)
	t.Total += ns
	t.Runs++
	t.Values += values
}

// AddDecoded counts the lengths and the bytes of a block that a decoder yielded.
func (t *UnitTime) AddDecoded(b *decoder.Block, physical format.Type) {
	values, bytes := uint64(b.Values()), uint64(len(b.Data))
	switch physical {
	case format.Boolean:
		bytes += (values + 7) / 8
	case format.Int32, format.Float, format.ByteArray: // and a length a string
		bytes += 4 * values
	case format.Int64, format.Double:
		bytes += 8 * values
	}
	t.Lengths += uint64(len(b.Lengths))
	t.Bytes += bytes + 4*uint64(len(b.Lengths))
}

// Profile is the work of each unit in one execution, by the unit's number. An operator that finds nothing to do in a
// block (fill_null without nulls), or whose work the next operator does as well (a clamp before a log), has run for
// 0 ns. An operator's time does not include the writing of tensors. Result.Transform is the sum of both.
type Profile [program.UnitNumbers]UnitTime

// Stopwatch reads the monotonic clock and keeps the profile of a slice.
type Stopwatch struct {
	epoch   time.Time // readings are durations since
	Profile Profile
}

// NewStopwatch returns a stopwatch whose epoch is now.
func NewStopwatch() *Stopwatch { return &Stopwatch{epoch: time.Now()} }

// ReadClock returns the nanoseconds since the epoch.
func (s *Stopwatch) ReadClock() uint64 { return uint64(time.Since(s.epoch)) }

// RecordRun counts a run of a unit that began at since and ends now, and returns now.
func (s *Stopwatch) RecordRun(u program.Unit, since uint64, values int) uint64 {
	now := s.ReadClock()
	s.Profile[u].AddRun(now-since, uint64(values))
	return now
}
