package format

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on a schema.
const (
	maxSchemaDepth = maxLevel // of a column that is read, so that its levels fit six bits
	maxPathBytes   = 64 << 20 // all leaves' paths together: a long group name is repeated in every leaf below it
)

// These are the repetition types of parquet.thrift.
const (
	required = 0
	optional = 1
	repeated = 2
)

// groupAnnotation is an annotation that matters to nesting.
type groupAnnotation uint8

const (
	notAnnotated groupAnnotation = iota
	annotatedList
	annotatedMap
)

// schemaElement is the structure SchemaElement.
type schemaElement struct {
	name       string
	physical   Type
	hasType    bool
	typeLength int32
	repetition int32
	children   int32
	logical    string
	annotation groupAnnotation
	bitWidth   int
	unsigned   bool
}

// readSchemaElement reads the structure SchemaElement.
func (r *compactReader) readSchemaElement() schemaElement {
	e := schemaElement{repetition: required} // what an element without a repetition type is; the root has none
	var converted, scale, precision int32 = -1, 0, 0
	var last int32
	named := false
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			e.physical, e.hasType = Type(enumByte(r.int32Field(t))), true
		case 2:
			e.typeLength = r.int32Field(t)
		case 3:
			e.repetition = r.int32Field(t)
		case 4:
			e.name, named = string(r.binaryField(t)), true
		case 5:
			e.children = r.int32Field(t)
		case 6:
			converted = r.int32Field(t)
		case 7:
			scale = r.int32Field(t)
		case 8:
			precision = r.int32Field(t)
		case 10:
			if r.expectType(t, thriftStruct) {
				r.readLogicalType(&e)
			}
		default:
			r.skipField(t)
		}
	}
	if !named {
		r.failCorrupt("schema element without a name")
	}
	if e.logical == "" && converted >= 0 {
		e.setConvertedType(converted, scale, precision)
	}
	return e
}

var convertedNames = [...]string{"STRING", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME(MILLIS)",
	"TIME(MICROS)", "TIMESTAMP(MILLIS)", "TIMESTAMP(MICROS)", "INT(8, unsigned)", "INT(16, unsigned)", "INT(32, unsigned)",
	"INT(64, unsigned)",
	"INT(8)", "INT(16)", "INT(32)", "INT(64)", "JSON", "BSON", "INTERVAL"}

// setConvertedType takes the older annotation, for an element without a logical type.
func (e *schemaElement) setConvertedType(c, scale, precision int32) {
	if int(c) >= len(convertedNames) {
		e.logical = "unknown"
		return
	}
	e.logical = convertedNames[c]
	switch {
	case c == 1 || c == 2:
		e.annotation = annotatedMap
	case c == 3:
		e.annotation = annotatedList
	case c == 5:
		e.logical = fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
	case c >= 11 && c <= 14:
		e.bitWidth, e.unsigned = 8<<(c-11), true
	case c >= 15 && c <= 18:
		e.bitWidth = 8 << (c - 15)
	}
}

var logicalNames = [...]string{"", "STRING", "MAP", "LIST", "ENUM", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "", "INT",
	"UNKNOWN", "JSON", "BSON",
	"UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"}

// readLogicalType reads the union LogicalType.
func (r *compactReader) readLogicalType(e *schemaElement) {
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		e.logical = "unknown"
		if last > 0 && int(last) < len(logicalNames) && logicalNames[last] != "" {
			e.logical = logicalNames[last]
		}
		switch {
		case last == 2:
			e.annotation = annotatedMap
		case last == 3:
			e.annotation = annotatedList
		case last == 5 && t == thriftStruct:
			scale, precision := r.readDecimal()
			e.logical = fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
			continue
		case (last == 7 || last == 8) && t == thriftStruct:
			if unit := r.readTimeUnit(); unit != "" {
				e.logical += "(" + unit + ")"
			}
			continue
		case last == 10 && t == thriftStruct:
			r.readIntegerType(e)
			continue
		}
		r.skipField(t)
	}
}

// readDecimal reads the structure DecimalType.
func (r *compactReader) readDecimal() (one, two int32) {
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			one = r.int32Field(t)
		case 2:
			two = r.int32Field(t)
		default:
			r.skipField(t)
		}
	}
	return one, two
}

var timeUnits = [...]string{"", "MILLIS", "MICROS", "NANOS"}

// readTimeUnit reads the structure TimeType or TimestampType and returns its unit, or "" if the unit is unknown.
func (r *compactReader) readTimeUnit() (unit string) {
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		if last != 2 || t != thriftStruct {
			r.skipField(t)
			continue
		}
		var choice int32
		for t := r.nextField(&choice); t != thriftStop; t = r.nextField(&choice) {
			if unit = ""; choice > 0 && int(choice) < len(timeUnits) {
				unit = timeUnits[choice]
			}
			r.skipField(t)
		}
	}
	return unit
}

// readIntegerType reads the structure IntType.
func (r *compactReader) readIntegerType(e *schemaElement) {
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			if r.expectType(t, thriftByte) {
				e.bitWidth = int(int8(r.readByte()))
			}
		case 2:
			e.unsigned = !r.boolField(t)
		default:
			r.skipField(t)
		}
	}
	switch e.bitWidth {
	case 8, 16, 32, 64:
	default:
		r.failCorrupt("INT annotation of another width than 8, 16, 32 or 64")
	}
	e.logical = fmt.Sprintf("INT(%d)", e.bitWidth)
	if e.unsigned {
		e.logical = fmt.Sprintf("INT(%d, unsigned)", e.bitWidth)
	}
}

// schemaTree turns the schema's flat, depth-first list of elements into leaves.
type schemaTree struct {
	elements  []schemaElement
	next      int
	leaves    []Leaf
	maps      []Map
	path      []string
	pathBytes int // All paths so far have as many.
}

// schemaBranch is what holds from the root to a node.
type schemaBranch struct {
	definition, repetition, elementDefinition uint8
	parent                                    *schemaElement
	name                                      []string // They are the names of the path that are part of a column's name.
	holdsElement                              bool     // the only child is the element of a list, which has no name
	inList                                    bool     // below a list's repeated node
	inMap                                     bool     // below a map that is read
	entryDefinition                           uint8    // An entry of the outermost list or map has it.
	refused                                   string   // why leaves below are not read; "" if they are
}

// schemaLeaves checks the schema and returns its leaves and its maps.
func schemaLeaves(elements []schemaElement) ([]Leaf, []Map, error) {
	if len(elements) == 0 {
		return nil, nil, corrupt("schema is empty")
	}
	root := &elements[0]
	for i := range elements {
		e := &elements[i]
		// what has children is a group: segmentio's writer gave the root a type
		e.hasType = e.hasType && e.children == 0
	}
	if root.hasType || root.children < 0 {
		return nil, nil, corrupt("schema's root is not a group")
	}
	t := schemaTree{elements: elements, next: 1}
	for range root.children {
		if err := t.walkElement(schemaBranch{parent: root}, 1); err != nil {
			return nil, nil, err
		}
	}
	if t.next != len(elements) {
		return nil, nil, corrupt("schema has %d elements, its groups hold %d", len(elements), t.next)
	}
	return t.leaves, t.maps, nil
}

// walkElement walks the next element and the elements below it.
func (t *schemaTree) walkElement(b schemaBranch, depth int) error {
	if depth > maxSchemaDepth {
		return t.refuseDeep(b)
	}
	if t.next >= len(t.elements) {
		return errSchemaEnds
	}
	e := &t.elements[t.next]
	t.next++
	t.path = append(t.path, e.name)
	defer func() { t.path = t.path[:len(t.path)-1] }()

	if e.children < 0 {
		return corrupt("schema element %q has %d children", e.name, e.children)
	}
	named := !b.holdsElement
	b.holdsElement = false
	switch e.repetition {
	case required:
	case optional:
		b.definition++
	case repeated:
		named = b.enterRepeated(e) && named
	default:
		return corrupt("schema element %q has repetition type %d", e.name, e.repetition)
	}
	if named {
		b.name = append(b.name, e.name)
	}
	if e.hasType {
		return t.addLeaf(e, b)
	}
	if b.refused == "" && e.annotation == annotatedMap && !b.inMap && !b.inList {
		return t.walkMap(e, b, depth)
	}
	return t.walkChildren(e, b, depth)
}

// walkChildren walks the elements of a group.
func (t *schemaTree) walkChildren(e *schemaElement, b schemaBranch, depth int) error {
	b.parent = e
	for range e.children {
		if err := t.walkElement(b, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// enterRepeated accounts for a repeated node, and reports whether the node is part of a column's name. The node is
// read as a list if it is a leaf, or the only group below a LIST and its only child is the element. Any other group is
// itself the element, a group of several values, and each leaf below it is a list of its own. Names are not compared,
// except for the two that the specification's rules of backward compatibility give to lists of groups.
func (b *schemaBranch) enterRepeated(e *schemaElement) (named bool) {
	b.definition++
	b.repetition++
	b.elementDefinition = b.definition
	if b.repetition == 1 {
		b.entryDefinition = b.definition
	}
	b.inList = true
	if b.inMap || b.parent.annotation != annotatedList || b.parent.children != 1 {
		return true
	}
	b.holdsElement = !e.hasType && e.children == 1 && e.name != "array" && e.name != b.parent.name+"_tuple"
	return false
}

// addLeaf adds the leaf of an element.
func (t *schemaTree) addLeaf(e *schemaElement, b schemaBranch) error {
	l := Leaf{Index: len(t.leaves), Physical: e.physical, Logical: e.logical, MaxDef: b.definition,
		MaxRep: b.repetition, RepDef: b.elementDefinition, List: b.repetition > 0}
	if b.repetition > 1 {
		l.EntryDef = b.entryDefinition
	}
	if e.physical == Int32 || e.physical == Int64 {
		l.BitWidth, l.Unsigned = e.bitWidth, e.unsigned
	}
	for _, name := range t.path {
		t.pathBytes += len(name) + 1
	}
	if t.pathBytes > maxPathBytes {
		return errLongNames
	}
	l.Path = strings.Join(t.path, ".")
	l.Name = l.Path
	if b.refused == "" {
		l.Name = strings.Join(b.name, ".")
	}
	if b.inMap {
		t.setMapPart(&l, b)
	}
	switch {
	case b.refused != "":
		l.Unsupported = &UnsupportedError{What: "nesting", Name: b.refused}
	case e.physical > FixedLenByteArray:
		l.Unsupported = &UnsupportedError{What: "type", Name: e.physical.String()}
	default:
		l.Unsupported = checkUTF8Name(l.Name)
	}
	if e.physical == Int96 {
		l.TypeLength = int96Length
	}
	if e.physical == FixedLenByteArray {
		l.TypeLength = int(e.typeLength)
		if e.typeLength < 0 {
			return corrupt("column %q: fixed length of %d bytes", l.Path, e.typeLength)
		}
		if (e.typeLength == 0 || e.typeLength > maxTypeLength) && l.Unsupported == nil {
			l.Unsupported = &UnsupportedError{What: "type", Name: fmt.Sprintf("%v(%d)", e.physical, e.typeLength)}
		}
	}
	t.leaves = append(t.leaves, l)
	return nil
}

var errSchemaEnds = corrupt("schema ends inside a group")

// errLongNames says that all leaves' paths together take too much memory.
var errLongNames = &UnsupportedError{What: "schema",
	Name: fmt.Sprintf("whose columns' names take more than %d bytes", maxPathBytes)}

// refuseDeep walks an element that is nested too deep, with all elements below it, without recursion: a schema may be
// as deep as it is long. Each column below is refused by itself.
func (t *schemaTree) refuseDeep(b schemaBranch) error {
	b.refused = tooDeepNesting
	if b.inMap {
		t.maps[len(t.maps)-1].Unsupported = &UnsupportedError{What: "map", Name: "with nesting " + tooDeepNesting}
	}
	top := len(t.path)
	defer func() { t.path = t.path[:top] }()
	left := []int32{1} // children still to come of every group that is open, from the outermost
	for len(left) > 0 {
		if left[len(left)-1] == 0 {
			if left = left[:len(left)-1]; len(left) > 0 {
				t.path = t.path[:len(t.path)-1]
			}
			continue
		}
		left[len(left)-1]--
		if t.next >= len(t.elements) {
			return errSchemaEnds
		}
		e := &t.elements[t.next]
		t.next++
		if e.children < 0 {
			return corrupt("schema element %q has %d children", e.name, e.children)
		}
		t.path = append(t.path, e.name)
		if e.repetition == repeated {
			b.repetition = maxLevel // a list, however deep
		}
		if !e.hasType {
			left = append(left, e.children)
			continue
		}
		if err := t.addLeaf(e, b); err != nil {
			return err
		}
		t.path = t.path[:len(t.path)-1]
	}
	return nil
}

// tooDeepNesting is why a column is refused that is nested too deep.
var tooDeepNesting = fmt.Sprintf("of more than %d levels", maxSchemaDepth)

// checkUTF8Name refuses a name that is not UTF-8: programs and pipelines hold names as text.
func checkUTF8Name(name string) error {
	if utf8.ValidString(name) {
		return nil
	}
	return &UnsupportedError{What: "name", Name: strconv.Quote(name) + ", which is not UTF-8,"}
}
