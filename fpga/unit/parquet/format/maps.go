package format

import (
	"strings"
)

// Map is a column of the schema that maps keys to values, numbers to numbers or to lists of them: what DPP's tables keep
// their features in, feature id to value. It is no leaf but two or three, which are read together:
//
//	map<int, number>            Keys, Values                 id to value
//	map<int, list<number>>      Keys, Values                 id to list
//	map<int, map<int, number>>  Keys, Values and Scores      id to scored list: inner keys, inner values
//
// Any leaf may be null but keys, which a writer should mark as required; an entry without a key is passed over.
type Map struct {
	Name   string // path of the map's field
	Keys   int    // leaf of the keys
	Values int    // leaf of the values, of a map to scored lists the ids
	Scores int    // leaf of the scores; -1 if there are none
	List   bool   // a value is a list
	// Unsupported says why the map cannot be read, and then the leaves are not told; nil if it can. It is an
	// *UnsupportedError.
	Unsupported error
}

// Part says which leaf of a map a leaf is.
type Part uint8

// The parts of a map.
const (
	NoPart    Part = iota // of no map that can be read
	MapKeys               // a row is a list of keys
	MapValues             // a row is a list of as many values, or of lists of them
	MapScores             // a row is a list of as many lists, as long as those of MapValues
)

// Map finds a map by the path of its field.
func (f *File) Map(name string) (*Map, bool) {
	for i := range f.Maps {
		if f.Maps[i].Name == name {
			return &f.Maps[i], true
		}
	}
	return nil, false
}

// mapNode walks a group that is annotated as a map. One of another shape than Map's is refused, as its leaves are.
func (t *tree) mapNode(e *element, b branch, depth int) error {
	m := Map{Name: strings.Join(t.path, "."), Keys: -1, Values: -1, Scores: -1}
	if t.bytes += len(m.Name); t.bytes > maxPathBytes {
		return errNames
	}
	if m.Unsupported = t.mapShape(t.next-1, &b); m.Unsupported != nil {
		b.refused = "map"
	}
	b.inMap = m.Unsupported == nil
	t.maps = append(t.maps, m)
	return t.children(e, b, depth)
}

// part notes a leaf of the map that was begun last. Its leaves come in this order.
func (t *tree) part(l *Leaf, b branch) {
	m := &t.maps[len(t.maps)-1]
	switch {
	case m.Keys < 0:
		m.Keys, l.Part = l.Index, MapKeys
	case m.Values < 0:
		m.Values, l.Part, m.List = l.Index, MapValues, b.rep == 2
	default:
		m.Scores, l.Part = l.Index, MapScores
	}
	if l.List = true; b.rep == 2 {
		l.EntryDef = b.entryDef
	}
}

// mapShape tells why the map whose group is an element cannot be read; nil if it can. Names are not looked at: older
// writers have others, and MAP_KEY_VALUE where MAP should be, or on the entries.
func (t *tree) mapShape(at int, b *branch) error {
	refuse := func(why string) error { return &UnsupportedError{What: "map", Name: why} }
	s := outline{t.elements[at+1:]}
	if err := t.mapNames(at); err != nil {
		return err
	}
	switch {
	case b.inList:
		return refuse("inside a list")
	case t.elements[at].children != 1 || !s.next().entries():
		return refuse("without entries of a key and a value")
	}
	key, value := s.next(), s.next()
	switch {
	case key.repetition == repeated || !key.hasType:
		return refuse("whose keys are no numbers")
	case key.physical != Int32 && key.physical != Int64:
		return refuse("whose keys are " + key.physical.String() + ", want INT32 or INT64")
	case value.hasType:
		return value.number("values")
	case value.repetition == repeated:
		return refuse("of lists of groups")
	case value.note == noteList && value.children == 1:
		list := s.next()
		switch {
		case list.repetition != repeated:
			return refuse("of groups")
		case list.hasType:
			return list.number("lists")
		case list.children != 1 || list.name == "array" || list.name == value.name+"_tuple":
			return refuse("of lists of groups")
		}
		if e := s.next(); e.hasType && e.repetition != repeated {
			return e.number("lists")
		}
		return refuse("of lists of lists or groups")
	case value.note == noteMap && value.children == 1 && s.next().entries():
		id, score := s.next(), s.next()
		if !id.hasType || !score.hasType || id.repetition == repeated || score.repetition == repeated {
			return refuse("of maps of other than numbers to numbers")
		}
		if err := id.number("ids"); err != nil {
			return err
		}
		return score.number("scores")
	}
	return refuse("of groups")
}

// mapNames refuses a map in which something is called what a program cannot name: its leaves go by their paths.
func (t *tree) mapNames(at int) error {
	if err := utf8Name(strings.Join(t.path, ".")); err != nil {
		return err
	}
	for open := int64(1); open > 0 && at < len(t.elements); at++ {
		if err := utf8Name(t.elements[at].name); err != nil {
			return err
		}
		open += int64(t.elements[at].children) - 1
	}
	return nil
}

// outline walks elements that are there, or not.
type outline struct{ left []element }

func (s *outline) next() element {
	if len(s.left) == 0 {
		return element{}
	}
	e := s.left[0]
	s.left = s.left[1:]
	return e
}

// entries tells whether a map's one child is the group of its entries.
func (e element) entries() bool { return !e.hasType && e.repetition == repeated && e.children == 2 }

// number refuses all but numbers.
func (e element) number(of string) error {
	if e.physical.Kind() != KindBytes {
		return nil
	}
	return &UnsupportedError{What: "map", Name: "whose " + of + " are " + e.physical.String()}
}
