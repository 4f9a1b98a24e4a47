package format

import (
	"fmt"
	"strings"
)

// Map is a column of the schema that maps keys, numbers or text, to values or to lists of values, numbers or bytes:
// DPP's tables keep their features so, feature id to value. A map is not a leaf. It has two or three leaves, which are
// read together:
//
//	map<key, value>           Keys, Values                 key to value
//	map<key, list<value>>     Keys, Values                 key to list
//	map<key, map<id, score>>  Keys, Values and Scores      key to scored list: inner keys, inner values
//
// Scores are numbers.
// Every leaf but the keys may be null. A writer should mark keys as required; an entry without a key is ignored.
type Map struct {
	Name   string // path of the map's field
	Keys   int    // leaf of the keys
	Values int    // leaf of the values, of a map to scored lists the ids
	Scores int    // leaf of the scores; -1 if there are none
	List   bool   // a value is a list
	// Unsupported says why the map cannot be read, and then the leaves are not set; nil if the map can be read. It is an
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

// walkMap walks a group that is annotated as a map, and is in no list. A map of another shape than Map's has no
// features: its keys and values are lists, as the fields of a list of groups are.
func (t *schemaTree) walkMap(e *schemaElement, b schemaBranch, depth int) error {
	m := Map{Name: strings.Join(t.path, "."), Keys: -1, Values: -1, Scores: -1}
	if t.pathBytes += len(m.Name); t.pathBytes > maxPathBytes {
		return errLongNames
	}
	m.Unsupported = t.checkMapShape(t.next - 1)
	b.inMap = m.Unsupported == nil
	t.maps = append(t.maps, m)
	return t.walkChildren(e, b, depth)
}

// setMapPart notes a leaf of the map that was begun last. Keys come first, then values, then scores.
func (t *schemaTree) setMapPart(l *Leaf, b schemaBranch) {
	m := &t.maps[len(t.maps)-1]
	switch {
	case m.Keys < 0:
		m.Keys, l.Part = l.Index, MapKeys
	case m.Values < 0:
		m.Values, l.Part, m.List = l.Index, MapValues, b.repetition == 2
	default:
		m.Scores, l.Part = l.Index, MapScores
	}
	l.Name = l.Path
}

// checkMapShape returns why a map cannot be read, or nil. at is the map's group among the elements. Names are not
// compared: older writers have other names, and MAP_KEY_VALUE where MAP should be, or on the entries.
func (t *schemaTree) checkMapShape(at int) error {
	refuse := func(why string) error { return &UnsupportedError{What: "map", Name: why} }
	s := elementQueue{t.elements[at+1:]}
	if err := t.checkMapNames(at); err != nil {
		return err
	}
	switch {
	case t.elements[at].children != 1 || !s.next().holdsEntries():
		return refuse("without entries of a key and a value")
	}
	key, value := s.next(), s.next()
	switch {
	case key.repetition == repeated || !key.hasType:
		return refuse("whose keys are no numbers")
	case key.physical != Int32 && key.physical != Int64 && key.physical != ByteArray:
		return refuse("whose keys are " + key.physical.String() + ", want INT32, INT64 or BYTE_ARRAY")
	case value.hasType:
		return value.requireReadable("values")
	case value.repetition == repeated:
		return refuse("of lists of groups")
	case value.annotation == annotatedList && value.children == 1:
		list := s.next()
		switch {
		case list.repetition != repeated:
			return refuse("of groups")
		case list.hasType:
			return list.requireReadable("lists")
		case list.children != 1 || list.name == "array" || list.name == value.name+"_tuple":
			return refuse("of lists of groups")
		}
		if e := s.next(); e.hasType && e.repetition != repeated {
			return e.requireReadable("lists")
		}
		return refuse("of lists of lists or groups")
	case value.annotation == annotatedMap && value.children == 1 && s.next().holdsEntries():
		id, score := s.next(), s.next()
		if !id.hasType || !score.hasType || id.repetition == repeated || score.repetition == repeated {
			return refuse("of maps of other than ids to numbers")
		}
		if err := id.requireReadable("ids"); err != nil {
			return err
		}
		return score.requireNumber("scores")
	}
	return refuse("of groups")
}

// checkMapNames refuses a map in which an element has a name that a program cannot hold: the map's leaves are named by
// their paths.
func (t *schemaTree) checkMapNames(at int) error {
	if err := checkUTF8Name(strings.Join(t.path, ".")); err != nil {
		return err
	}
	for open := int64(1); open > 0 && at < len(t.elements); at++ {
		if err := checkUTF8Name(t.elements[at].name); err != nil {
			return err
		}
		open += int64(t.elements[at].children) - 1
	}
	return nil
}

// elementQueue hands out elements one after another, and empty elements behind the last.
type elementQueue struct{ left []schemaElement }

// next returns the next element.
func (s *elementQueue) next() schemaElement {
	if len(s.left) == 0 {
		return schemaElement{}
	}
	e := s.left[0]
	s.left = s.left[1:]
	return e
}

// holdsEntries reports whether the only child of a map is the group of its entries.
func (e schemaElement) holdsEntries() bool {
	return !e.hasType && e.repetition == repeated && e.children == 2
}

// requireReadable refuses an element whose leaf is not read.
func (e schemaElement) requireReadable(of string) error {
	if e.physical < FixedLenByteArray ||
		e.physical == FixedLenByteArray && e.typeLength > 0 && e.typeLength <= maxTypeLength {
		return nil
	}
	return &UnsupportedError{What: "map", Name: fmt.Sprintf("whose %s are %v(%d)", of, e.physical, e.typeLength)}
}

// requireNumber refuses an element that is not a number.
func (e schemaElement) requireNumber(of string) error {
	if e.physical.Kind() != KindBytes {
		return nil
	}
	return &UnsupportedError{What: "map", Name: "whose " + of + " are " + e.physical.String()}
}
