package engine

import (
	"time"

	"github.com/millrace/millrace/fpga/program"
)

// UnitTime is the work of one unit. A run is one block of one column through one operator, or out of one decoder
// (text: all columns of a block of rows; Parquet: a decoded dictionary is a run too). Times are in nanoseconds.
type UnitTime struct {
	Runs, Values             uint64
	Total, Shortest, Longest uint64
}

// addRun counts a run of ns nanoseconds over a number of values.
func (t *UnitTime) addRun(ns, values uint64) {
	if t.Runs == 0 || ns < t.Shortest {
		t.Shortest = ns
	}
	t.Longest = max(t.Longest, ns)
	t.Total += ns
	t.Runs++
	t.Values += values
}

// Profile is the work of each unit in one execution, by the unit's number. An operator that finds nothing to do in a
// block (fill_null without nulls), or whose work the next operator does as well (a clamp before a log), has run for
// 0 ns. An operator's time does not include the writing of tensors. Result.Transform is the sum of both.
type Profile [program.UnitMap + 1]UnitTime

// stopwatch reads the monotonic clock and keeps the profile of a slice.
type stopwatch struct {
	epoch   time.Time // readings are durations since
	profile Profile
}

// readClock returns the nanoseconds since the epoch.
func (s *stopwatch) readClock() uint64 { return uint64(time.Since(s.epoch)) }

// recordRun counts a run of a unit that began at since and ends now, and returns now.
func (s *stopwatch) recordRun(u program.Unit, since uint64, values int) uint64 {
	now := s.readClock()
	s.profile[u].addRun(now-since, uint64(values))
	return now
}
