package parquettest

import "math/rand"

// Level is one pair of levels and its value, which is nil if there is none.
type Level struct {
	Rep, Def byte
	Value    any
}

// Levels turns rows into levels, as the Dremel paper says. Where more than one level means null, r picks.
func (c *Column) Levels(r *rand.Rand) []Level {
	if c.Shape.entryDef() > 0 {
		return c.shredMaps(r)
	}
	maxDef, repDef := c.Shape.LevelBounds()
	var out []Level
	for _, row := range c.Rows {
		list, isList := row.([]any)
		switch {
		case repDef == 0 && row != nil:
			out = append(out, Level{0, maxDef, row})
		case repDef == 0:
			out = append(out, Level{0, byte(r.Intn(int(maxDef))), nil})
		case !isList:
			out = append(out, Level{0, byte(r.Intn(int(repDef) - 1)), nil})
		case len(list) == 0:
			out = append(out, Level{0, repDef - 1, nil})
		}
		for i, v := range list {
			l := Level{byte(min(i, 1)), maxDef, v}
			if v == nil {
				l.Def = maxDef - 1
			}
			out = append(out, l)
		}
	}
	return out
}

// shredMaps is Levels for lists in a map.
func (c *Column) shredMaps(r *rand.Rand) []Level {
	maxDef, repDef := c.Shape.LevelBounds()
	entry := c.Shape.entryDef()
	var out []Level
	for _, row := range c.Rows {
		lists, _ := row.([]any)
		switch {
		case row == nil:
			out = append(out, Level{0, byte(r.Intn(int(entry) - 1)), nil})
		case len(lists) == 0:
			out = append(out, Level{0, entry - 1, nil})
		}
		for i, l := range lists {
			list, _ := l.([]any)
			first := byte(min(i, 1))
			switch {
			case l == nil:
				out = append(out, Level{first, entry + byte(r.Intn(int(repDef-entry)-1)), nil})
			case len(list) == 0:
				out = append(out, Level{first, repDef - 1, nil})
			}
			for j, v := range list {
				x := Level{first, maxDef, v}
				if j > 0 {
					x.Rep = 2
				}
				if v == nil {
					x.Def = maxDef - 1
				}
				out = append(out, x)
			}
		}
	}
	return out
}
