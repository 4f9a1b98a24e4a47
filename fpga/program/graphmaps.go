package program

import "fmt"

// MaxGraphPicks bounds the features of maps that the steps of a graph take.
const MaxGraphPicks = 1 << 12

// GraphValue is a value that a graph begins with: a column, or a feature of a map.
type GraphValue struct {
	Type   ValueType
	Column int  // Column counts in the graph; a feature has that of the map's values.
	Pick   Pick // A feature has a Pick.
}

// LeafPart returns which leaf of a map a column is, by itself or in a graph; NoPart if it is none.
func (c *Column) LeafPart() Part {
	if c.Part.OfMap() {
		return c.Part
	}
	return c.MapLeaf
}

// GraphValues returns the values that a graph of the columns begins with, in the order of their numbers. A column is
// one value, and so is each key that a map's picks take; a map's keys and scores are none.
func GraphValues(columns []Column) []GraphValue {
	values := make([]GraphValue, 0, len(columns))
	for i := range columns {
		c := &columns[i]
		switch c.MapLeaf {
		case NoPart:
			values = append(values, GraphValue{Type: ValueType{Kind: c.Kind, List: c.List}, Column: i})
		case MapValues:
			for _, k := range c.Picks {
				values = append(values, GraphValue{Type: ValueType{Kind: c.Kind, List: c.List, Scored: k.Scored},
					Column: i, Pick: k})
			}
		}
	}
	return values
}

// validateMapLeaves checks the columns of a graph that are leaves of maps.
func validateMapLeaves(columns []Column) error {
	part := func(i int) Part {
		if i < 0 || i >= len(columns) {
			return NoPart
		}
		return columns[i].MapLeaf
	}
	picks := 0
	for i := range columns {
		c := &columns[i]
		var err error
		switch c.MapLeaf {
		case NoPart:
		case MapKeys:
			if err = c.checkKeys(); err == nil && part(i+1) != MapValues {
				err = fmt.Errorf("keys of a map without its values")
			}
		case MapValues:
			picks += len(c.Picks)
			if err = c.checkGraphPicks(part(i-1), part(i+1)); err != nil {
				break
			}
			for _, k := range c.Picks {
				if err = k.checkKey(columns[i-1].Kind); err != nil {
					break
				}
			}
		case MapScores:
			if err = c.checkScores(); err == nil && (part(i-1) != MapValues || !columns[i-1].List) {
				err = fmt.Errorf("scores of a map without lists of ids")
			}
		default:
			err = fmt.Errorf("%v is not a leaf of a map", c.MapLeaf)
		}
		switch {
		case err != nil:
		case c.MapLeaf == NoPart && len(c.Picks) > 0:
			err = fmt.Errorf("picks keys, and is not the values of a map")
		case (c.MapLeaf == MapValues || c.MapLeaf == MapScores) && c.Absent != columns[i-1].Absent:
			err = fmt.Errorf("a map of which partitions may lack a part")
		case picks > MaxGraphPicks:
			err = fmt.Errorf("%d features of maps in a graph, want at most %d", picks, MaxGraphPicks)
		}
		if err != nil {
			return fmt.Errorf("column %q of the graph: %w", c.Name, err)
		}
	}
	return nil
}

// checkKeys checks the column of a map's keys.
func (c *Column) checkKeys() error {
	if c.Kind != Int64 && c.Kind != Bytes || c.List {
		return fmt.Errorf("keys are %v (list: %t), want int64 or bytes", c.Kind, c.List)
	}
	return nil
}

// checkScores checks the column of a map's scores.
func (c *Column) checkScores() error {
	if c.Kind == Bytes || !c.List {
		return fmt.Errorf("scores are %v (list: %t), want lists of numbers", c.Kind, c.List)
	}
	return nil
}

// checkGraphPicks checks the values of a map in a graph, which lie between columns of two parts.
func (c *Column) checkGraphPicks(before, behind Part) error {
	switch {
	case before != MapKeys:
		return fmt.Errorf("values of a map without its keys")
	case len(c.Picks) == 0:
		return fmt.Errorf("a map of which no key is picked")
	}
	for _, k := range c.Picks {
		if k.Scored && (behind != MapScores || c.Kind != Int64 && c.Kind != Bytes) {
			return fmt.Errorf("key %d: scores that are not read, or of %v", k.Key, c.Kind)
		}
	}
	return nil
}
