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
	if c.Shape.listLevels() != nil {
		var out []Level
		for _, row := range c.Rows {
			list, isList := row.([]any)
			if !isList {
				out = append(out, Level{0, byte(r.Intn(int(c.Shape.listLevels()[0]) - 1)), nil})
				continue
			}
			out = c.shredLists(out, r, list, 1, 0)
		}
		return out
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

// shredLists appends the levels of a list of a depth that is not null, whose first level has a repetition level. The
// elements are those of the lists inside it, of which r decides how many there are and which are empty.
func (c *Column) shredLists(out []Level, r *rand.Rand, elements []any, depth int, rep byte) []Level {
	levels := c.Shape.listLevels()
	if len(elements) == 0 && (depth == len(levels) || r.Intn(2) == 0) {
		return append(out, Level{rep, levels[depth-1] - 1, nil})
	}
	if depth == len(levels) {
		maxDef, _ := c.Shape.LevelBounds()
		for i, v := range elements {
			l := Level{rep, maxDef, v}
			if i > 0 {
				l.Rep = byte(depth)
			}
			if v == nil {
				l.Def--
			}
			out = append(out, l)
		}
		return out
	}
	for lists := 1 + r.Intn(4); lists > 0; lists-- {
		n := len(elements)
		if lists > 1 {
			n = r.Intn(n + 1)
		}
		if n == 0 && levels[depth]-levels[depth-1] > 1 && r.Intn(3) == 0 {
			out = append(out, Level{rep, levels[depth-1], nil}) // a null list
		} else {
			out = c.shredLists(out, r, elements[:n], depth+1, rep)
		}
		elements, rep = elements[n:], byte(depth)
	}
	return out
}
