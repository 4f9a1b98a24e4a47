package engine

import (
	"time"

	"github.com/millrace/millrace/fpga/program"
)

// UnitTime is what one unit did. A run is one block of one column through one operator, or out of one decoder (text: all
// columns of a block of rows; Parquet: a decoded dictionary is a run too). Times are in nanoseconds.
type UnitTime struct {
	Runs, Values             uint64
	Total, Shortest, Longest uint64
}

// add counts a run of ns nanoseconds over so many values.
func (t *UnitTime) add(ns, values uint64) {
	if t.Runs == 0 || ns < t.Shortest {
		t.Shortest = ns
	}
	t.Longest = max(t.Longest, ns)
	t.Total += ns
	t.Runs++
	t.Values += values
}

// Profile is what each unit did in one execution, by the unit's number. An operator that finds nothing to do in a block, as
// fill_null does where there are no nulls, or that the next one does as well, as a log does a clamp, has run for 0 ns. Where the
// operators' times end the writing of tensors begins: Result.Transform is the sum of both.
type Profile [program.UnitMap + 1]UnitTime

// stopwatch reads the monotonic clock and keeps the profile of a slice.
type stopwatch struct {
	epoch   time.Time // readings are durations since
	profile Profile
}

// now reads the clock, in nanoseconds.
func (s *stopwatch) now() uint64 { return uint64(time.Since(s.epoch)) }

// lap counts a run that began at since and ends now, and returns now.
func (s *stopwatch) lap(u program.Unit, since uint64, values int) uint64 {
	now := s.now()
	s.profile[u].add(now-since, uint64(values))
	return now
}
