package pipeline

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // The zones are those of the build on every machine.

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Clocks are taken from a zone's rules for the years from firstZoneYear to lastZoneYear. The offset of the first of
// them holds before, and the offset of the last behind.
const (
	firstZoneYear = 1900
	lastZoneYear  = 2100
)

// zoneNames is the names of the zones that Go's database has, one a line, for suggestions.
//
//go:embed zones.txt
var zoneNames string

// LoadZone returns a zone of the database of time zones: that of the machine, or that of this program if the machine
// has none.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // names that Go gives to a zone of each machine's own
		return nil, fmt.Errorf("%q is not a time zone", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone%s", problem.Shorten(name), problem.Suggest(name,
			strings.Fields(zoneNames)))
	}
	return zone, nil
}

// ExpandZone returns when a zone's clocks change, and the offsets from UTC that hold from then on.
func ExpandZone(zone *time.Location) IDTable {
	at := time.Date(firstZoneYear, time.January, 1, 0, 0, 0, 0, time.UTC)
	end := time.Date(lastZoneYear+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	_, offset := at.In(zone).Zone()
	t := IDTable{Keys: []int64{math.MinInt64}, Values: []int64{int64(offset)}}
	for {
		_, next := at.In(zone).ZoneBounds()
		if next.IsZero() || !next.Before(end) {
			return t
		}
		if !next.After(at) { // package time lets years of rules end a day early if they are leap years
			next = at.AddDate(0, 0, 1)
		}
		at = next
		_, offset := at.In(zone).Zone()
		if int64(offset) != t.Values[len(t.Values)-1] { // the name of the zone's time may change alone
			t.Keys, t.Values = append(t.Keys, at.Unix()), append(t.Values, int64(offset))
		}
	}
}

// PinZones returns the spec with every time zone's changes written out beside its name, so that the mini-batches do not
// depend on the rules of zones of the machine that reads the document, and whether there were any to write. What is
// written out already stays as it is. Where several machines read a document, the one that takes a job in does this.
func (s *Spec) PinZones() (pinned *Spec, changed bool, err error) {
	pinned = s.withOwnChains()
	for _, c := range pinned.Chains() {
		ops, some, err := pinZones(*c.Ops)
		if err != nil {
			return nil, false, err
		}
		*c.Ops, changed = ops, changed || some
	}
	if !changed {
		return s, false, nil
	}
	return pinned, true, nil
}

// localHourName is the operator whose zones are expanded.
const localHourName = "get_local_hour"

// pinZones returns operators whose zones have their changes beside their names.
func pinZones(ops []Op) (pinned []Op, changed bool, err error) {
	pinned = append([]Op(nil), ops...)
	for i := range pinned {
		o := &pinned[i]
		name, named := o.Argument("zone")
		if _, written := o.Argument("changes"); o.Name != localHourName || !named || written {
			continue
		}
		text, _ := name.Value.(Text)
		zone, err := LoadZone(string(text))
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", o.Name, err)
		}
		o.Args = append(append([]Arg(nil), o.Args...), Arg{Name: "changes", Value: ExpandZone(zone), Pos: name.Pos})
		changed = true
	}
	return pinned, changed, nil
}
