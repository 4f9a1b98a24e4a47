package pipeline

import (
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/mapid"
)

// localHourName is the name of the operator whose zones are expanded.
const localHourName = "get_local_hour"

func checkLocalHour(p *problems, o *Op, a location) {
	zone, hasZone := o.arg("zone")
	offset, hasOffset := o.arg("offset")
	changes, hasChanges := o.arg("changes")
	switch {
	case hasOffset && (hasZone || hasChanges):
		p.add(a.key("offset", firstPos(offset.Pos, a.pos)), ErrValue, "an offset beside a zone or its changes, want one of "+
			"them")
	case hasOffset:
		if _, err := readOffset(string(offset.Value.(Text))); err != nil {
			p.add(a.key("offset", firstPos(offset.Pos, a.pos)), ErrValue, "%v", err)
		}
	case hasChanges:
		checkChanges(p, changes.Value.(IDTable), a.key("changes", firstPos(changes.Pos, a.pos)))
	case hasZone:
		if _, err := loadZone(string(zone.Value.(Text))); err != nil {
			p.add(a.key("zone", firstPos(zone.Pos, a.pos)), ErrValue, "%v", err)
		}
	default:
		p.add(a, ErrMissing, "zone or offset")
	}
}

// checkChanges checks the changes of a zone's clocks that a document holds.
func checkChanges(p *problems, t IDTable, a location) {
	switch {
	case t.Keys == nil:
		p.add(a, ErrValue, "a list, want a mapping of times to offsets, in seconds")
	case len(t.Keys) > getlocalhour.MaxChanges:
		p.add(a, ErrValue, "%d changes, want at most %d", len(t.Keys), getlocalhour.MaxChanges)
	case t.Keys[0] != math.MinInt64:
		p.add(a, ErrValue, "the first time is %d, want %d: the offset before every change", t.Keys[0], math.MinInt64)
	default:
		for i, offset := range t.Values {
			if offset < -getlocalhour.MaxOffset || offset > getlocalhour.MaxOffset {
				p.add(a, ErrValue, "from %d on an offset of %d seconds, want less than a day", t.Keys[i], offset)
				return
			}
		}
	}
}

func applyLocalHour(c *chain, o *Op, a location) {
	if !c.requireIntegers(o, a) {
		return
	}
	op, err := c.r.localHour(o)
	if err != nil {
		c.refuse(a, ErrValue, "%v", err)
		return
	}
	c.appendOp(op)
	c.ids, c.bounded = idRange{0, 23}, true
}

// localHour returns the operator of a zone. It expands a zone once.
func (r *resolver) localHour(o *Op) (*getlocalhour.Op, error) {
	if changes, ok := o.arg("changes"); ok {
		t := changes.Value.(IDTable)
		return &getlocalhour.Op{Starts: t.Keys, Offsets: t.Values}, nil
	}
	if offset, ok := o.arg("offset"); ok {
		seconds, err := readOffset(string(offset.Value.(Text)))
		return &getlocalhour.Op{Starts: []int64{math.MinInt64}, Offsets: []int64{seconds}}, err
	}
	named, _ := o.arg("zone")
	name := string(named.Value.(Text))
	if made := r.zones[name]; made != nil {
		return made, nil
	}
	zone, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	if r.zones == nil {
		r.zones = map[string]*getlocalhour.Op{}
	}
	r.zones[name] = expandZone(zone)
	return r.zones[name], nil
}

func applyMapID(c *chain, o *Op, a location) {
	if !c.requireIntegers(o, a) {
		return
	}
	t, other := c.value(o, "table").(IDTable), c.number(o, "default").Int
	if err := c.r.countTable(t); err != nil {
		c.refuse(a, ErrValue, "%v", err)
		return
	}
	c.appendOp(&mapid.Op{Keys: t.Keys, Values: t.Values, Default: other})
	c.ids = idRange{min(other, slices.Min(t.Values)), max(other, slices.Max(t.Values))}
	c.bounded = true
}

// countTable counts the numbers of a table, which many features may use, once.
func (r *resolver) countTable(t IDTable) error {
	first := &t.Values[0]
	if r.counted[first] {
		return nil
	}
	if r.counted == nil {
		r.counted = map[*int64]bool{}
	}
	r.counted[first] = true
	return r.countNumbers(len(t.Keys) + len(t.Values))
}

// checkTable checks a table of ids.
func checkTable(p *problems, v Value, a location) {
	t, ok := v.(IDTable)
	switch {
	case !ok:
		p.add(a, ErrValue, "%s, want a table", describeValue(v))
	case len(t.Values) == 0 || len(t.Values) > maxBorders:
		p.add(a, ErrValue, "%d values, want 1 to %d", len(t.Values), maxBorders)
	case t.Keys != nil && len(t.Keys) != len(t.Values):
		p.add(a, ErrValue, "%d keys and %d values", len(t.Keys), len(t.Values))
	default:
		for i := 1; i < len(t.Keys); i++ {
			if t.Keys[i] <= t.Keys[i-1] {
				p.add(a, ErrValue, "keys do not ascend: %d comes behind %d", t.Keys[i], t.Keys[i-1])
				return
			}
		}
	}
}
