package getlocalhour

import (
	"fmt"
	"math"
	"strconv"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "get_local_hour", Unit: Unit,
	Example: "- get_local_hour: {zone: Europe/Berlin}",
	Cost:    catalogue.Costs(8),
	Summary: "The hour of the day, 0 to 23, of a time in seconds since 1970-01-01 00:00:00 UTC, at a place: " +
		"floorMod(t + offset, 86400) / 3600. `zone` is a name of the IANA database, whose rules for the years " +
		"1900 to 2100 become a table in the program and so a part of the job's identity; the first offset of the " +
		"table holds before, and the last behind.",
	Params: []catalogue.Param{
		{Name: "zone", Type: catalogue.ParamText, Optional: true, Summary: "name of a time zone, as `Europe/Berlin`"},
		{Name: "offset", Type: catalogue.ParamText, Optional: true,
			Summary: "instead of `zone`, clocks that never change: hours and minutes ahead of UTC, as `+02:00`"},
		{Name: "changes", Type: catalogue.ParamTable, Optional: true,
			Summary: "seconds since 1970 to offsets in seconds, from -2^63 on: the table of `zone`. A control plane " +
				"writes it into the pipeline of a job, so that all machines use the same"},
	},
	Takes: "int64: seconds", Yields: "int64 in [0, 24)",
	Nulls: "stay null",
	Lists: "element by element",
	Errors: "a zone that neither the machine nor the program knows; neither `zone`, `offset` nor `changes`; an " +
		"offset of a day or more",
	Source: "DPP GetLocalHour; Velox `hour(timestamp, zone)`",
	Check:  check,
	Apply:  apply,
}

func check(c catalogue.Check) {
	zone, hasZone := c.Given("zone")
	offset, hasOffset := c.Given("offset")
	changes, hasChanges := c.Given("changes")
	switch {
	case hasOffset && (hasZone || hasChanges):
		c.Wrong("offset", catalogue.ErrValue, "an offset beside a zone or its changes, want one of them")
	case hasOffset:
		if _, err := readOffset(string(offset.(catalogue.Text))); err != nil {
			c.Wrong("offset", catalogue.ErrValue, "%v", err)
		}
	case hasChanges:
		checkChanges(c, changes.(catalogue.IDTable))
	case hasZone:
		if err := c.CheckZone(string(zone.(catalogue.Text))); err != nil {
			c.Wrong("zone", catalogue.ErrValue, "%v", err)
		}
	default:
		c.Wrong("", catalogue.ErrMissing, "zone or offset")
	}
}

// checkChanges checks the changes of a zone's clocks that a document holds.
func checkChanges(c catalogue.Check, t catalogue.IDTable) {
	wrong := func(format string, args ...any) { c.Wrong("changes", catalogue.ErrValue, format, args...) }
	switch {
	case t.Keys == nil:
		wrong("a list, want a mapping of times to offsets, in seconds")
	case len(t.Keys) > MaxChanges:
		wrong("%d changes, want at most %d", len(t.Keys), MaxChanges)
	case t.Keys[0] != math.MinInt64:
		wrong("the first time is %d, want %d: the offset before every change", t.Keys[0], math.MinInt64)
	default:
		for i, offset := range t.Values {
			if offset < -MaxOffset || offset > MaxOffset {
				wrong("from %d on an offset of %d seconds, want less than a day", t.Keys[i], offset)
				return
			}
		}
	}
}

func apply(c catalogue.Chain) {
	if !c.RequireIntegers() {
		return
	}
	op, err := hours(c)
	if err != nil {
		c.Refuse(catalogue.ErrValue, "%v", err)
		return
	}
	c.Append(op)
	c.SetIDs(catalogue.Range{High: 23}, true)
}

// sharedZone identifies operators of one zone by its name.
type sharedZone string

// hours returns the operator of a table of changes, of an offset, or of a zone, which is expanded once.
func hours(c catalogue.Chain) (program.Op, error) {
	if changes, ok := c.Given("changes"); ok {
		t := changes.(catalogue.IDTable)
		return &Op{Starts: t.Keys, Offsets: t.Values}, nil
	}
	if offset, ok := c.Given("offset"); ok {
		seconds, err := readOffset(string(offset.(catalogue.Text)))
		return &Op{Starts: []int64{math.MinInt64}, Offsets: []int64{seconds}}, err
	}
	named, _ := c.Given("zone")
	zone := string(named.(catalogue.Text))
	return c.Shared(sharedZone(zone), func() (program.Op, error) {
		t, err := c.Zone(zone)
		return &Op{Starts: t.Keys, Offsets: t.Values}, err
	})
}

// readOffset reads a distance from UTC, as +02:00 and -05:30, in seconds.
func readOffset(s string) (int64, error) {
	wrong := fmt.Errorf("%.64q, want hours and minutes ahead of UTC or behind, as +02:00 and -05:30", s)
	if len(s) != 6 || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, wrong
	}
	hours, err := strconv.ParseUint(s[1:3], 10, 8)
	if err != nil || hours > 23 {
		return 0, wrong
	}
	minutes, err := strconv.ParseUint(s[4:], 10, 8)
	if err != nil || minutes > 59 {
		return 0, wrong
	}
	seconds := int64(hours*60*60 + minutes*60)
	if s[0] == '-' {
		return -seconds, nil
	}
	return seconds, nil
}
