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

// Repetition types of parquet.thrift.
const (
	required = 0
	optional = 1
	repeated = 2
)

// Annotations that matter to nesting.
type groupNote uint8

const (
	noteNone groupNote = iota
	noteList
	noteMap
)

// element is one SchemaElement.
type element struct {
	name       string
	physical   Type
	hasType    bool
	typeLength int32
	repetition int32
	children   int32
	logical    string
	note       groupNote
	bitWidth   int
	unsigned   bool
}

func (r *compact) schemaElement() element {
	e := element{repetition: required} // what an element without a repetition type is; the root has none
	var converted, scale, precision int32 = -1, 0, 0
	var last int32
	named := false
	for t := r.field(&last); t != tStop; t = r.field(&last) {
		switch last {
		case 1:
			e.physical, e.hasType = Type(enum(r.i32(t))), true
		case 2:
			e.typeLength = r.i32(t)
		case 3:
			e.repetition = r.i32(t)
		case 4:
			e.name, named = string(r.binary(t)), true
		case 5:
			e.children = r.i32(t)
		case 6:
			converted = r.i32(t)
		case 7:
			scale = r.i32(t)
		case 8:
			precision = r.i32(t)
		case 10:
			if r.want(t, tStruct) {
				r.logicalType(&e)
			}
		default:
			r.skip(t)
		}
	}
	if !named {
		r.corrupt("schema element without a name")
	}
	if e.logical == "" && converted >= 0 {
		e.convertedType(converted, scale, precision)
	}
	return e
}

var convertedNames = [...]string{"STRING", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
	"TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "INT(8, unsigned)", "INT(16, unsigned)", "INT(32, unsigned)", "INT(64, unsigned)",
	"INT(8)", "INT(16)", "INT(32)", "INT(64)", "JSON", "BSON", "INTERVAL"}

// convertedType takes the older annotation, used where there is no logical type.
func (e *element) convertedType(c, scale, precision int32) {
	if int(c) >= len(convertedNames) {
		e.logical = "unknown"
		return
	}
	e.logical = convertedNames[c]
	switch {
	case c == 1 || c == 2:
		e.note = noteMap
	case c == 3:
		e.note = noteList
	case c == 5:
		e.logical = fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
	case c >= 11 && c <= 14:
		e.bitWidth, e.unsigned = 8<<(c-11), true
	case c >= 15 && c <= 18:
		e.bitWidth = 8 << (c - 15)
	}
}

var logicalNames = [...]string{"", "STRING", "MAP", "LIST", "ENUM", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "", "INT", "UNKNOWN", "JSON", "BSON",
	"UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"}

// logicalType reads the union LogicalType.
func (r *compact) logicalType(e *element) {
	var last int32
	for t := r.field(&last); t != tStop; t = r.field(&last) {
		e.logical = "unknown"
		if last > 0 && int(last) < len(logicalNames) && logicalNames[last] != "" {
			e.logical = logicalNames[last]
		}
		switch {
		case last == 2:
			e.note = noteMap
		case last == 3:
			e.note = noteList
		case last == 5 && t == tStruct:
			scale, precision := r.twoInts()
			e.logical = fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
			continue
		case last == 10 && t == tStruct:
			r.integerType(e)
			continue
		}
		r.skip(t)
	}
}

func (r *compact) twoInts() (one, two int32) {
	var last int32
	for t := r.field(&last); t != tStop; t = r.field(&last) {
		switch last {
		case 1:
			one = r.i32(t)
		case 2:
			two = r.i32(t)
		default:
			r.skip(t)
		}
	}
	return one, two
}

func (r *compact) integerType(e *element) {
	var last int32
	for t := r.field(&last); t != tStop; t = r.field(&last) {
		switch last {
		case 1:
			if r.want(t, tByte) {
				e.bitWidth = int(int8(r.byte()))
			}
		case 2:
			e.unsigned = !r.bool(t)
		default:
			r.skip(t)
		}
	}
	switch e.bitWidth {
	case 8, 16, 32, 64:
	default:
		r.corrupt("INT annotation of another width than 8, 16, 32 or 64")
	}
	e.logical = fmt.Sprintf("INT(%d)", e.bitWidth)
	if e.unsigned {
		e.logical = fmt.Sprintf("INT(%d, unsigned)", e.bitWidth)
	}
}

// tree turns the schema's flat, depth-first list into leaves.
type tree struct {
	elements []element
	next     int
	leaves   []Leaf
	maps     []Map
	path     []string
	bytes    int // of all paths so far
}

// branch is what holds from the root to a node.
type branch struct {
	def, rep, repDef uint8
	parent           *element
	listDepth        int    // of the path's names that name the list; 0: no list yet
	inList           bool   // below a list's repeated node
	inMap            bool   // below a map that is read
	entryDef         uint8  // below a map that is read: the definition level of an entry
	refused          string // why leaves below are not read; "" if they are
}

// leavesOf checks the schema and returns its leaves and its maps.
func leavesOf(elements []element) ([]Leaf, []Map, error) {
	if len(elements) == 0 {
		return nil, nil, corrupt("schema is empty")
	}
	root := &elements[0]
	for i := range elements {
		e := &elements[i]
		e.hasType = e.hasType && e.children == 0 // what has children is a group: segmentio's writer gave the root a type
	}
	if root.hasType || root.children < 0 {
		return nil, nil, corrupt("schema's root is not a group")
	}
	t := tree{elements: elements, next: 1}
	for range root.children {
		if err := t.node(branch{parent: root}, 1); err != nil {
			return nil, nil, err
		}
	}
	if t.next != len(elements) {
		return nil, nil, corrupt("schema has %d elements, its groups hold %d", len(elements), t.next)
	}
	return t.leaves, t.maps, nil
}

func (t *tree) node(b branch, depth int) error {
	if depth > maxSchemaDepth {
		return t.deep(b)
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
	switch e.repetition {
	case required:
	case optional:
		b.def++
	case repeated:
		b.enterRepeated(e, depth)
	default:
		return corrupt("schema element %q has repetition type %d", e.name, e.repetition)
	}
	if e.hasType {
		return t.leaf(e, b)
	}
	if b.refused == "" && e.note == noteMap && !b.inMap {
		return t.mapNode(e, b, depth)
	}
	return t.children(e, b, depth)
}

// children walks what a group holds.
func (t *tree) children(e *element, b branch, depth int) error {
	if b.refused == "" && b.inList && !b.inMap && e.repetition != repeated {
		b.refused = "group in a list"
		if e.note == noteList {
			b.refused = "list in a list"
		}
	}
	b.parent = e
	for range e.children {
		if err := t.node(b, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// enterRepeated accounts for a repeated node. It is read as a list when it is a leaf, or the one group below a LIST
// whose one child is the element; names are not looked at except for the two that the specification's rules of
// backward compatibility give to lists of groups.
func (b *branch) enterRepeated(e *element, depth int) {
	b.def++
	b.rep++
	b.repDef = b.def
	if b.inMap {
		if b.rep == 1 {
			b.entryDef = b.def
		}
		return
	}
	annotated := b.parent.note == noteList && b.parent.children == 1
	b.listDepth = depth
	if annotated {
		b.listDepth = depth - 1
	}
	switch {
	case b.refused != "":
	case b.inList:
		b.refused = "list in a list"
	case e.hasType:
	case !annotated, e.children != 1, e.name == "array", e.name == b.parent.name+"_tuple":
		b.refused = "group in a list"
	}
	b.inList = true
}

func (t *tree) leaf(e *element, b branch) error {
	l := Leaf{Index: len(t.leaves), Physical: e.physical, Logical: e.logical, MaxDef: b.def, MaxRep: b.rep, RepDef: b.repDef, List: b.rep == 1}
	if e.physical == Int32 || e.physical == Int64 {
		l.BitWidth, l.Unsigned = e.bitWidth, e.unsigned
	}
	for _, name := range t.path {
		t.bytes += len(name) + 1
	}
	if t.bytes > maxPathBytes {
		return errNames
	}
	l.Path = strings.Join(t.path, ".")
	l.Name = l.Path
	if b.inMap {
		t.part(&l, b)
	}
	if b.refused == "" && b.listDepth > 0 {
		l.Name = strings.Join(t.path[:b.listDepth], ".")
	}
	switch {
	case b.refused != "":
		l.Unsupported = &UnsupportedError{What: "nesting", Name: b.refused}
	case e.physical > FixedLenByteArray || e.physical == Int96:
		l.Unsupported = &UnsupportedError{What: "type", Name: e.physical.String()}
	default:
		l.Unsupported = utf8Name(l.Name)
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

// errNames says that all leaves' paths together take too much memory.
var errNames = &UnsupportedError{What: "schema", Name: fmt.Sprintf("whose columns' names take more than %d bytes", maxPathBytes)}

// deep walks an element that is nested too deep, and what is below it, without recursion: a schema may be as deep as it
// is long. The columns below are refused, each by itself.
func (t *tree) deep(b branch) error {
	b.refused = tooDeep
	if b.inMap {
		t.maps[len(t.maps)-1].Unsupported = &UnsupportedError{What: "map", Name: "with nesting " + tooDeep}
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
			b.rep = maxLevel // a list, however deep
		}
		if !e.hasType {
			left = append(left, e.children)
			continue
		}
		if err := t.leaf(e, b); err != nil {
			return err
		}
		t.path = t.path[:len(t.path)-1]
	}
	return nil
}

// tooDeep is why a column is refused that is nested deeper than maxSchemaDepth.
var tooDeep = fmt.Sprintf("of more than %d levels", maxSchemaDepth)

// utf8Name refuses a name that is no text: programs and pipelines cannot have it.
func utf8Name(name string) error {
	if utf8.ValidString(name) {
		return nil
	}
	return &UnsupportedError{What: "name", Name: strconv.Quote(name) + ", which is not UTF-8,"}
}
