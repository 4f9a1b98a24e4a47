package format

import "fmt"

// File is the content of a footer, checked against the file's size and against itself.
type File struct {
	Version      int32
	CreatedBy    string
	Rows         int64 // the sum of the row groups' rows
	Size         int64 // bytes of the file
	Leaves       []Leaf
	Maps         []Map
	RowGroups    []RowGroup
	FooterOffset int64 // where the footer begins: its Thrift, the length of that, and the magic

	writer    fileWriter
	leafIndex map[string]int // by name, the place in Leaves; nil in a File that ReadFooter did not make
}

// Leaf finds the leaf with a name: its Path, or its Name if only one leaf has that Name.
func (f *File) Leaf(name string) (*Leaf, bool) {
	if i, ok := f.leafIndex[name]; ok {
		return &f.Leaves[i], true
	}
	var found *Leaf
	for i := range f.Leaves {
		l := &f.Leaves[i]
		if l.Path == name {
			return l, true
		}
		if l.Name == name {
			if found != nil {
				return nil, false
			}
			found = l
		}
	}
	return found, found != nil
}

// indexLeaves notes where leaves are: by their paths, the first of several with one path, and by the names that only
// one leaf has and that are no path. A pipeline asks for hundreds of leaves.
func (f *File) indexLeaves() {
	f.leafIndex = make(map[string]int, 2*len(f.Leaves))
	names := make(map[string]int, len(f.Leaves))
	for i := range f.Leaves {
		l := &f.Leaves[i]
		if _, twice := f.leafIndex[l.Path]; !twice {
			f.leafIndex[l.Path] = i
		}
		names[l.Name]++
	}
	for i := range f.Leaves {
		name := f.Leaves[i].Name
		if _, path := f.leafIndex[name]; !path && names[name] == 1 {
			f.leafIndex[name] = i
		}
	}
}

// Leaf is a column that has values of its own: a leaf of the schema's tree.
type Leaf struct {
	Path string // the names from the root to the leaf, joined by dots: "cat_0.list.element"
	// Name is the name in a pipeline: the path without the names that the annotation LIST asks for, of a list's
	// repeated node and of its element ("cat_0", "visits.page"). The leaves of a Map that can be read have their Path.
	Name       string
	Index      int // the place among the leaves, and of the leaf's chunk in every row group
	Physical   Type
	TypeLength int    // bytes of a FIXED_LEN_BYTE_ARRAY; 12 for INT96, else 0
	Logical    string // the annotation by name, e.g. "STRING", "INT(32, unsigned)", "DECIMAL(9, 2)"; "" if none
	Unsigned   bool   // INT(BitWidth, unsigned): zero-extended
	BitWidth   int    // BitWidth is that of an INT annotation: 8, 16, 32, 64; else 0.
	List       bool   // a row is a list of values
	MaxDef     uint8  // the definition level of a value that is not null
	MaxRep     uint8  // 0, or 1 for a list, or 2 for lists in a map, or the levels of lists in lists
	// RepDef is, for lists, the definition level of an element, null or not. A list with a lower level is empty
	// (RepDef-1) or null. Of lists in lists it is that of an element of the innermost ones.
	RepDef   uint8
	EntryDef uint8 // lists in a map or in lists: the definition level of an entry of the outermost; else 0
	Part     Part  // A leaf of a map is not a column by itself.
	// RowsUncounted and AlwaysCompressed are faults of the file's writer, see ColumnType.
	RowsUncounted, AlwaysCompressed bool
	// Unsupported says why the column cannot be read; nil if it can. It is an *UnsupportedError.
	Unsupported error
}

// ColumnType is the description of a leaf for a decoder, its chunk's codec included.
func (l *Leaf) ColumnType(codec Codec) ColumnType {
	return ColumnType{
		Physical: l.Physical, TypeLength: int32(l.TypeLength), Unsigned: l.Unsigned, BitWidth: uint8(l.BitWidth),
		List: l.List, MaxDef: l.MaxDef, MaxRep: l.MaxRep, RepDef: l.RepDef, EntryDef: l.EntryDef, Codec: codec,
		Flattened: l.Flattened(), RowsUncounted: l.RowsUncounted, AlwaysCompressed: l.AlwaysCompressed,
	}
}

// Flattened reports whether a row is a list of the values of lists in lists, of all levels, in their order.
func (l *Leaf) Flattened() bool { return l.Part == NoPart && l.MaxRep > 1 }

// Nullable reports whether a row of the column can be null: a null value, or a null list.
func (l *Leaf) Nullable() bool {
	switch {
	case l.Flattened():
		return l.EntryDef > 1
	case l.List:
		return l.RepDef > 1
	}
	return l.MaxDef > 0
}

// RowGroup is a run of rows, with a chunk for every leaf, in the order of the leaves.
type RowGroup struct {
	Rows    int64
	Columns []Chunk
}

// EncodingSet is the set of encodings that a chunk says it uses: bit e for Encoding e.
type EncodingSet uint32

// Has reports whether e is in the set.
func (s EncodingSet) Has(e Encoding) bool { return e < 32 && s>>e&1 != 0 }

// Chunk is where one leaf's values of one row group lie.
type Chunk struct {
	Codec     Codec
	Encodings EncodingSet
	NumValues int64 // levels: rows of a flat column; of a list, elements with one more for every empty or null list
	// Offset and Compressed bound the chunk's bytes in the file: dictionary page and data pages, headers included.
	Offset, Compressed int64
	Uncompressed       int64 // the same pages unpacked, headers included; a hint, not checked
	DataOffset         int64 // DataOffset is where the first data page begins in the file.
	DictOffset         int64 // DictOffset is where the dictionary page begins in the file; 0 if the footer names none.
	// OffsetIndex is where the chunk's page locations lie in the file; 0, 0 if it has none.
	OffsetIndexOffset int64
	OffsetIndexLength int32
	physical          Type
	// PresentRows is how many of the row group's rows have a value, by the chunk's statistics: a number that is not
	// null, or a list with an element. It is -1 if the file does not say so.
	PresentRows int64
	nulls       int64   // Statistics.null_count; -1 if the file does not say so
	levels      []int64 // SizeStatistics.definition_level_histogram
	// Unsupported says why the chunk cannot be read; nil if it can. It is an *UnsupportedError.
	Unsupported error
}

// ColumnType says how a column chunk's pages become values. It has a fixed size and no pointers, so it can be
// written into a slice task; Validate before use what came from outside.
type ColumnType struct {
	Physical   Type
	Codec      Codec
	TypeLength int32 // bytes of a FIXED_LEN_BYTE_ARRAY; 12 for INT96, else 0
	BitWidth   uint8 // BitWidth is that of an INT annotation, else 0.
	Unsigned   bool
	List       bool
	MaxDef     uint8
	MaxRep     uint8 // 1 for a list, 2 for lists in a map, 2..63 for lists in lists, else 0
	RepDef     uint8 // lists: 1..MaxDef, see Leaf; else 0
	EntryDef   uint8 // MaxRep above 1: 1..RepDef-1, see Leaf; else 0
	// Flattened reports that MaxRep is above 1 and a row is the list of the values of lists in lists, in their order.
	// Lists without elements contribute nothing.
	Flattened bool
	// RowsUncounted reports that the headers of v2 data pages give the number of values as the number of rows. Such a
	// page may begin inside a row, as a v1 page may.
	RowsUncounted bool
	// AlwaysCompressed reports that v2 data pages are in the chunk's codec, even if their headers say that they are not
	// compressed.
	AlwaysCompressed bool
}

// Bounds on what a ColumnType may say.
const (
	maxLevel      = 63      // nesting of the schema; levels fit six bits
	maxTypeLength = 1 << 20 // bytes of a FIXED_LEN_BYTE_ARRAY value
	int96Length   = 12      // bytes of an INT96
)

// Kind is the kind of the column's values.
func (ct *ColumnType) Kind() Kind { return ct.Physical.Kind() }

// NullableValues reports whether a Block of this column has Valid: a flat column that is not required, or a list whose
// elements are not.
func (ct *ColumnType) NullableValues() bool { return ct.MaxDef > ct.RepDef }

// NullableRows reports whether a Block of this column has RowValid: a list that can be null as a whole. Lists in a map
// or in lists have none.
func (ct *ColumnType) NullableRows() bool { return ct.RepDef > 1 && ct.MaxRep == 1 }

// Validate checks that the type can be decoded and contradicts itself nowhere.
func (ct *ColumnType) Validate() error {
	if err := ct.Codec.Supported(); err != nil {
		return err
	}
	switch ct.Physical {
	case Boolean, Int32, Int64, Float, Double, ByteArray:
	case FixedLenByteArray:
		if ct.TypeLength <= 0 || ct.TypeLength > maxTypeLength {
			return corrupt("column type: fixed length of %d bytes is outside 1..%d", ct.TypeLength, maxTypeLength)
		}
	case Int96:
		if ct.TypeLength != int96Length {
			return corrupt("column type: INT96 of %d bytes, want %d", ct.TypeLength, int96Length)
		}
	default:
		return &UnsupportedError{What: "type", Name: ct.Physical.String()}
	}
	if ct.MaxDef > maxLevel {
		return corrupt("column type: definition level %d is above %d", ct.MaxDef, maxLevel)
	}
	if ct.MaxRep > 2 && !ct.Flattened {
		return &UnsupportedError{What: "nesting", Name: fmt.Sprintf("repetition level %d in a map", ct.MaxRep)}
	}
	if ct.Flattened && ct.MaxRep < 2 {
		return corrupt("column type: lists in lists with repetition level %d", ct.MaxRep)
	}
	if ct.List != (ct.MaxRep > 0) || ct.List != (ct.RepDef > 0) || ct.RepDef > ct.MaxDef {
		return corrupt("column type: list %t with levels %d, %d, %d", ct.List, ct.MaxDef, ct.MaxRep, ct.RepDef)
	}
	if (ct.MaxRep > 1) != (ct.EntryDef > 0) || ct.EntryDef > 0 && int(ct.EntryDef)+int(ct.MaxRep)-1 > int(ct.RepDef) {
		return corrupt("column type: entries at level %d, elements at %d, repetition level %d", ct.EntryDef, ct.RepDef,
			ct.MaxRep)
	}
	return nil
}

// Chunk returns a leaf's chunk of a row group, and the leaf. It fails where there is none, and where it cannot be read.
func (f *File) Chunk(rowGroup, leaf int) (*Chunk, *Leaf, error) {
	if rowGroup < 0 || rowGroup >= len(f.RowGroups) || leaf < 0 || leaf >= len(f.Leaves) {
		return nil, nil, fmt.Errorf("parquet: no row group %d, column %d: the file has %d and %d",
			rowGroup, leaf, len(f.RowGroups), len(f.Leaves))
	}
	ch, l := &f.RowGroups[rowGroup].Columns[leaf], &f.Leaves[leaf]
	for _, err := range []error{l.Unsupported, ch.Unsupported} {
		if err != nil {
			return nil, nil, fmt.Errorf("row group %d: column %q: %w", rowGroup, l.Path, err)
		}
	}
	return ch, l, nil
}
