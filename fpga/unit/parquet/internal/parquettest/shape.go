package parquettest

import (
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

// Shape is how a leaf hangs in the schema.
type Shape uint8

// The shapes, of which the first Shapes can be written as files.
const (
	ShapeRequired Shape = iota
	ShapeOptional
	ShapeInGroup            // optional group { optional leaf }: levels up to 2
	ShapeList               // optional list of optional elements
	ShapeListRequired       // required list of required elements
	ShapeListOfRequired     // optional list of required elements
	ShapeListInGroup        // optional group { optional list of optional elements }: levels up to 4
	ShapeRepeated           // repeated leaf
	ShapeTwoLevel           // optional group (LIST) { repeated leaf }
	Shapes              = 9 // how many a file is made of

	ShapeInMap         Shape = 9  // for pages and chunks: optional map to optional lists of optional elements
	ShapeInMapRequired Shape = 10 // for pages and chunks: required map to required lists of required elements

	// Lists in lists, of which a row is the list of all values: for pages and chunks.
	ShapeLists     Shape = 11 // optional list of optional lists of optional elements
	ShapeListsDeep Shape = 12 // optional list of required lists of optional lists of optional elements
	PageShapes           = 13
)

// schema writes the shape's schema elements and returns how many there are.
func (s Shape) schema(w *thrift.Writer, name string, leaf func(name string, repetition int32)) int {
	group := func(name string, repetition, children int32, list bool) {
		w.Begin()
		w.Int32(3, repetition)
		w.String(4, name)
		w.Int32(5, children)
		if list {
			w.Int32(6, 3)
		}
		w.End()
	}
	list := func(outer, inner int32) {
		group(name, outer, 1, true)
		group("list", repetitionRepeated, 1, false)
		leaf("element", inner)
	}
	switch s {
	case ShapeRequired:
		leaf(name, repetitionRequired)
	case ShapeOptional:
		leaf(name, repetitionOptional)
	case ShapeInGroup:
		group("g", repetitionOptional, 1, false)
		leaf(name, repetitionOptional)
		return 2
	case ShapeList:
		list(repetitionOptional, repetitionOptional)
		return 3
	case ShapeListRequired:
		list(repetitionRequired, repetitionRequired)
		return 3
	case ShapeListOfRequired:
		list(repetitionOptional, repetitionRequired)
		return 3
	case ShapeListInGroup:
		group("g", repetitionOptional, 1, false)
		list(repetitionOptional, repetitionOptional)
		return 4
	case ShapeRepeated:
		leaf(name, repetitionRepeated)
	case ShapeTwoLevel:
		group(name, repetitionOptional, 1, true)
		leaf("array", repetitionRepeated)
		return 2
	}
	return 1
}

// LevelBounds returns the definition level of a value, and that of a list's element; the latter is 0 outside of lists.
func (s Shape) LevelBounds() (maxDef, repDef uint8) {
	switch s {
	case ShapeRequired:
		return 0, 0
	case ShapeOptional:
		return 1, 0
	case ShapeInGroup:
		return 2, 0
	case ShapeList:
		return 3, 2
	case ShapeListRequired, ShapeRepeated:
		return 1, 1
	case ShapeListOfRequired, ShapeTwoLevel:
		return 2, 2
	case ShapeListInGroup:
		return 4, 3
	case ShapeInMap:
		return 5, 4
	case ShapeInMapRequired:
		return 2, 2
	case ShapeLists:
		return 5, 4
	case ShapeListsDeep:
		return 6, 5
	}
	return 0, 0
}

// listLevels returns the definition levels of an element of the lists of each depth, for lists in lists.
func (s Shape) listLevels() []byte {
	switch s {
	case ShapeLists:
		return []byte{2, 4}
	case ShapeListsDeep:
		return []byte{2, 3, 5}
	}
	return nil
}

// entryDef is the definition level of a map's entry; 0 outside of maps.
func (s Shape) entryDef() uint8 {
	switch s {
	case ShapeInMap:
		return 2
	case ShapeInMapRequired:
		return 1
	}
	return 0
}

// ColumnType returns the type of a leaf of the shape, without its physical type.
func (s Shape) ColumnType() (ct format.ColumnType) {
	ct.MaxDef, ct.RepDef = s.LevelBounds()
	ct.EntryDef = s.entryDef()
	if ct.List = ct.RepDef > 0; ct.List {
		ct.MaxRep = 1
	}
	if ct.EntryDef > 0 {
		ct.MaxRep = 2
	}
	if levels := s.listLevels(); levels != nil {
		ct.EntryDef, ct.MaxRep, ct.Flattened = levels[0], uint8(len(levels)), true
	}
	return ct
}

// The repetition types of schema elements.
const (
	repetitionRequired = 0
	repetitionOptional = 1
	repetitionRepeated = 2
)
