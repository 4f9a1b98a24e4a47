package program

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// A map of the source (feature id to value, to list, or to scored list) is two or three consecutive columns: its keys,
// its values, and its scores where they are wanted. They are read together, a row's keys beside its values; each sink
// of the values takes the value of one key. A section of its own says which columns belong to a map, so that the bytes
// of a program without maps do not change.

// Part says which leaf of a map a column is, or that it is a column of a graph. The columns of a map or of a graph are
// read together.
type Part uint8

// The parts of a map, in the order in which their columns follow each other.
const (
	NoPart    Part = 0 // a column by itself
	MapKeys   Part = 1 // Int64 or Bytes, a list a row; has no sinks
	MapValues Part = 2 // as many a row as keys: Kind, also Bytes, or with List lists of Kind; has the sinks
	MapScores Part = 3 // as many lists a row as keys, as long as those of MapValues; has no sinks

	// The columns of a graph are parts too. These numbers are not part of the wire form: the section of graphs names
	// the columns.
	GraphFirst Part = 4 // the first column of a graph
	GraphNext  Part = 5 // a further column of the same graph
)

// String names the part.
func (p Part) String() string {
	switch p {
	case NoPart:
		return "none"
	case MapKeys:
		return "keys"
	case MapValues:
		return "values"
	case MapScores:
		return "scores"
	case GraphFirst:
		return "graph"
	case GraphNext:
		return "graph, continued"
	}
	return fmt.Sprintf("part(%d)", uint8(p))
}

// Pick is the key that a sink of a map's values takes: the value of the last entry with that key. Without such an entry
// it takes a null, or a list of length 0 where values are lists.
type Pick struct {
	Key  int64  // Key is for a map whose keys are Int64.
	Text string // Text is for a map whose keys are Bytes.
	// Scored: the list's scores become the weights of its ids, rounded to float32, and a list with a null among its
	// scores gets length 0. Otherwise every id weighs 1.
	Scored bool
}

// keyString writes the key that a pick takes, for people.
func (k Pick) keyString(keys Kind) string {
	if keys == Bytes {
		return strconv.Quote(k.Text)
	}
	return strconv.FormatInt(k.Key, 10)
}

// checkKey checks the key of a pick of a map whose keys are of a kind.
func (k Pick) checkKey(keys Kind) error {
	switch {
	case keys != Bytes && k.Text != "":
		return fmt.Errorf("the text %.64q as a key of a map whose keys are %v", k.Text, keys)
	case keys == Bytes && k.Key != 0:
		return fmt.Errorf("the number %d as a key of a map whose keys are text", k.Key)
	case len(k.Text) > MaxName:
		return fmt.Errorf("a key of %d bytes, want at most %d", len(k.Text), MaxName)
	case !utf8.ValidString(k.Text):
		return fmt.Errorf("the key %.64q is not UTF-8", k.Text)
	}
	return nil
}

// Continues reports whether a column is read together with the column before it.
func (p Part) Continues() bool { return p == MapValues || p == MapScores || p == GraphNext }

// OfMap reports whether a column is a leaf of a map.
func (p Part) OfMap() bool { return p == MapKeys || p == MapValues || p == MapScores }

// Parts returns the number of columns of the map or graph that begins at column i: 1 for a column by itself.
func (p *Program) Parts(i int) int {
	n := 1
	switch p.Columns[i].Part {
	case MapKeys:
		for i+n < len(p.Columns) && p.Columns[i+n].Part.OfMap() && p.Columns[i+n].Part > p.Columns[i+n-1].Part {
			n++
		}
	case GraphFirst:
		for i+n < len(p.Columns) && p.Columns[i+n].Part == GraphNext {
			n++
		}
	}
	return n
}

// TextKeys reports whether a column holds the values of a map whose keys are text.
func (p *Program) TextKeys(i int) bool {
	return p.Columns[i].LeafPart() == MapValues && i > 0 && p.Columns[i-1].LeafPart() == MapKeys &&
		p.Columns[i-1].Kind == Bytes
}

// HasMaps reports whether a column belongs to a map.
func (p *Program) HasMaps() bool {
	return slices.ContainsFunc(p.Columns, func(c Column) bool { return c.LeafPart() != NoPart })
}

// takesScores reports whether a sink takes scores.
func (p *Program) takesScores() bool {
	for i := range p.Columns {
		for _, k := range p.Columns[i].Picks {
			if k.Scored && p.Columns[i].Part == MapValues {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Graphs, func(g Graph) bool { return g.takesScores() })
}

// LayoutIn returns the layout in an output range of size bytes, and how many elements of kjt.values the range holds.
// Weights, if the output has them, lie behind the room for the values, element by element; size decides how large
// that room is.
func (o Output) LayoutIn(rows uint32, size uint64) (p OutputLayout, values uint64) {
	p = o.Layout(rows)
	if o.Keys == 0 || size < p.Values {
		return p, 0
	}
	room, id := size-p.Values, o.IDs.Bytes()
	if !o.Weights {
		return p, room / id
	}
	// A multiple of Align values keeps both tensors aligned.
	values = room / (id + 4) &^ (Align - 1)
	p.Weights = p.Values + values*id
	return p, values
}

// Size returns the most bytes that a mini-batch with the given numbers of rows and values takes in an output range.
func (o Output) Size(rows uint32, values uint64) uint64 {
	at := o.Layout(rows).Values
	switch {
	case o.Keys == 0:
		return at
	case !o.Weights:
		return at + values*o.IDs.Bytes()
	}
	return at + (values+Align-1)&^(Align-1)*(o.IDs.Bytes()+4)
}

// validatePart checks the rules that apply only to columns of maps.
func (p *Program) validatePart(i int) error {
	c := &p.Columns[i]
	before, behind := NoPart, NoPart
	if i > 0 {
		before = p.Columns[i-1].Part
	}
	if i+1 < len(p.Columns) {
		behind = p.Columns[i+1].Part
	}
	switch {
	case c.Part > GraphNext:
		return fmt.Errorf("%v is not a part of a map", c.Part)
	case c.Part.OfMap() && p.Source != Parquet:
		return fmt.Errorf("a map with source %v", p.Source)
	case c.MapLeaf != NoPart && (c.Part != GraphFirst && c.Part != GraphNext || p.Source != Parquet):
		return fmt.Errorf("a leaf of a map of no graph over Parquet")
	case c.Part != MapValues && c.MapLeaf != MapValues && len(c.Picks) > 0:
		return fmt.Errorf("picks keys, and is not the values of a map")
	case (c.Part == MapKeys || c.Part == MapScores) && len(c.Sinks) > 0:
		return fmt.Errorf("the %v of a map feed %d sinks, want none", c.Part, len(c.Sinks))
	case (c.Part == GraphFirst || c.Part == GraphNext) && len(c.Sinks) > 0:
		return fmt.Errorf("a column of a graph feeds %d sinks, want none", len(c.Sinks))
	case c.Part == GraphNext && before != GraphFirst && before != GraphNext:
		return fmt.Errorf("a further column of a graph without the first")
	}
	if c.Part.OfMap() && c.Part.Continues() && i > 0 && c.Absent != p.Columns[i-1].Absent {
		return fmt.Errorf("a map of which partitions may lack a part")
	}
	switch c.Part {
	case MapKeys:
		if err := c.checkKeys(); err != nil {
			return err
		}
		if behind != MapValues {
			return fmt.Errorf("keys of a map without its values")
		}
	case MapValues:
		switch {
		case before != MapKeys:
			return fmt.Errorf("values of a map without its keys")
		case len(c.Picks) != len(c.Sinks):
			return fmt.Errorf("%d keys for %d sinks", len(c.Picks), len(c.Sinks))
		}
		for j := range c.Picks {
			if err := c.Picks[j].checkKey(p.Columns[i-1].Kind); err != nil {
				return fmt.Errorf("sink %d: %w", j, err)
			}
			if c.Picks[j].Scored && (behind != MapScores || !p.Output.Weights) {
				return fmt.Errorf("sink %d: scores that are not read, or have no tensor", j)
			}
			if at := slices.IndexFunc(c.Sinks[j].Ops, movesIDs); c.Picks[j].Scored && at >= 0 {
				return fmt.Errorf("sink %d: %v of scored ids", j, c.Sinks[j].Ops[at].Unit())
			}
		}
	case MapScores:
		if before != MapValues || !p.Columns[i-1].List {
			return fmt.Errorf("scores of a map without lists of ids")
		}
		return c.checkScores()
	}
	return nil
}
