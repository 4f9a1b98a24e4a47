package program

import (
	"fmt"
	"math"
)

// MaxZoneChanges is the greatest number of offsets of a LocalHour.
const MaxZoneChanges = 4096

// MaxZoneOffset is the greatest distance of a zone's clocks from UTC, in seconds: less than a day.
const MaxZoneOffset = 24*60*60 - 1

// LocalHour yields the hour of the day, 0 to 23, of a time in seconds since 1970-01-01 00:00:00 UTC, at a place whose
// clocks are Offsets[i] seconds ahead of UTC from Starts[i] on. Starts begins with the least int64 and ascends. Takes
// and yields Int64.
type LocalHour struct{ Starts, Offsets []int64 }

// MapID replaces an id by the value of its key, and by Default if no key is the id. Without keys, values are those of
// the ids 0, 1, 2 and so on. Takes and yields Int64.
type MapID struct {
	Keys    []int64 // ascending, as many as values; none: the table is dense
	Values  []int64 // at least one
	Default int64
}

// Unit implements [Op].
func (*LocalHour) Unit() Unit { return UnitLocalHour }

// Unit implements [Op].
func (*MapID) Unit() Unit { return UnitMapID }

// Out implements [Op].
func (*LocalHour) Out(in Kind) Kind { return kindIf(in, Int64, Int64) }

// Out implements [Op].
func (*MapID) Out(in Kind) Kind { return kindIf(in, Int64, Int64) }

// checkTable checks a zone whose lists may have been checked before.
func (o *LocalHour) checkTable(checked map[tableKey]bool) error {
	n := len(o.Starts)
	switch {
	case n == 0 || n > MaxZoneChanges:
		return fmt.Errorf("%d times, want 1 to %d", n, MaxZoneChanges)
	case len(o.Offsets) != n:
		return fmt.Errorf("%d times and %d offsets", n, len(o.Offsets))
	case o.Starts[0] != math.MinInt64:
		return fmt.Errorf("the first time is %d, want the least int64", o.Starts[0])
	}
	if err := checkAscent(o.Starts, "time", checked); err != nil {
		return err
	}
	key := tableKey{int: &o.Offsets[0], n: n, use: UnitLocalHour}
	if checked[key] {
		return nil
	}
	for i, offset := range o.Offsets {
		if offset < -MaxZoneOffset || offset > MaxZoneOffset {
			return fmt.Errorf("offset %d is %d seconds, want less than a day", i, offset)
		}
	}
	checked[key] = true
	return nil
}

// checkTable checks a table whose keys may have been checked before.
func (o *MapID) checkTable(checked map[tableKey]bool) error {
	switch n := len(o.Values); {
	case n == 0 || n > MaxBorders:
		return fmt.Errorf("%d values, want 1 to %d", n, MaxBorders)
	case len(o.Keys) == 0:
		return nil
	case len(o.Keys) != n:
		return fmt.Errorf("%d keys and %d values", len(o.Keys), n)
	}
	return checkAscent(o.Keys, "key", checked)
}

// checkAscent checks that numbers ascend, unless that has been checked.
func checkAscent(numbers []int64, what string, checked map[tableKey]bool) error {
	key := tableKey{int: &numbers[0], n: len(numbers), use: UnitMapID}
	if checked[key] {
		return nil
	}
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return fmt.Errorf("%s %d (%d) is not above the one before", what, i, numbers[i])
		}
	}
	checked[key] = true
	return nil
}
