package program

// Source is the format of a partition's bytes.
type Source uint8

// The formats. The numbers are part of the wire form.
const (
	Parquet      Source = 1 // column chunks of a Parquet file
	CriteoTSV    Source = 2 // Criteo's text rows: label, 13 decimal, 26 hexadecimal fields
	CriteoBinary Source = 3 // 40 little-endian int32 a row: label, 13 dense, 26 sparse; Piper's headline input
)

// Malformed says what becomes of a text row that the grammar refuses.
type Malformed uint8

// The treatments of a malformed row. The numbers are part of the wire form.
const (
	MalformedFail Malformed = 0 // the split fails with a typed error (default)
	MalformedDrop Malformed = 1 // the row does not exist; it is counted
	MalformedNull Malformed = 2 // the cell (with a wrong field count: the row) is null
)

// Kind is the kind of a value on its way from the decoder to the tensor.
type Kind uint8

// The kinds. The numbers are part of the wire form.
const (
	Int64   Kind = 1 // every integer source: INT(w, unsigned) zero-extended, others sign-extended; boolean 0 or 1
	Float32 Kind = 2
	Float64 Kind = 3
	Bytes   Kind = 4
)

// Program is a lowered pipeline: the engine's work for every mini-batch of a job.
type Program struct {
	Source    Source
	Label     bool      // text: rows begin with a label field (the 39-field form has none)
	Malformed Malformed // text
	// Columns are in the order of their execution: first those that feed keys, in key order, and then those that feed
	// only dense or label.
	Columns []Column
	Graphs  []Graph // Graphs are in the order of the columns of part GraphFirst.
	Output  Output
	// LookupTables lie in the tables range, one behind the other.
	LookupTables []LookupTable
	// Modules are the WebAssembly modules that steps name, where they are at hand. They are not part of the wire form: a
	// drive has those of its image.
	Modules Modules
}

// Column is one leaf column of the source, read once, and where its values go.
type Column struct {
	Name  string // leaf path, for errors
	Field uint16 // text: 0 label, 1..13 int_0..int_12, 14..39 cat_0..cat_25 (with or without a label field)
	Kind  Kind   // as decoded
	List  bool   // a list of Kind; its sinks can only be sparse
	Sinks []Sink // at least one; at most one of them is sparse, unless the column is a scalar; see Part for maps
	Part  Part   // Part is a leaf of a map, or a place in a graph.
	Picks []Pick // MapValues: of each sink, the key whose value it takes; in a graph, of each value that it is
	// MapLeaf says which leaf of a map a column of a graph is: its features are values of the graph. NoPart otherwise.
	MapLeaf Part
	// Absent says that partitions may lack the column, whose rows are null there: its tasks then have an absent chunk.
	Absent bool
	// FitsInt64 says that an unsigned value of 2^63 or more fails the slice: operators that read the values as numbers
	// take int64, which does not hold it.
	FitsInt64 bool
	// Reading says how chunks are read whose kind, unit or scale is not the column's.
	Reading Reading
}

// Dest is a tensor that a sink writes.
type Dest uint8

// The tensors. The numbers are part of the wire form.
const (
	ToLabel  Dest = 1
	ToDense  Dest = 2
	ToSparse Dest = 3
)

// Sink is the chain of operators from a column to one place in the output. Conversions are explicit: lowering
// inserts [Convert] wherever an operator or the tensor takes another kind, so that a chain that ends in ToLabel or
// ToDense ends as Float32 and one that ends in ToSparse ends as Int64.
type Sink struct {
	To    Dest
	Index uint32 // dense: column of the dense tensor; sparse: key
	Ops   []Op
	// Refuses says which real numbers fail the slice at the end of the chain. It is RefusesNothing for a sparse sink.
	Refuses Refusal
}

// Refusal says which real numbers a tensor does not take.
type Refusal uint8

// The refusals. The numbers are part of the wire form.
const (
	RefusesNothing   Refusal = 0
	RefusesNaN       Refusal = 1
	RefusesNonFinite Refusal = 2 // NaN and infinities
)

// Output is the output section: which tensors a mini-batch has.
type Output struct {
	Label     bool      // float32 [B]
	Dense     uint32    // [B, Dense], row-major
	DenseType DenseType // type of its elements; DenseFloat32 without dense columns
	Keys      uint32    // keys of the keyed jagged tensor
	IDs       IDs       // type of its values
	Fixed     bool      // every length is 1 by construction: no lengths tensor, values of key f start at element f*B
	// Weights: there is a tensor of float32, one for each of kjt.values.
	Weights bool
}

// IDs is the element type of kjt.values.
type IDs uint8

// The element types. The numbers are part of the wire form.
const (
	IDs64 IDs = 0
	IDs32 IDs = 1
)

// Bytes returns the size of one id.
func (i IDs) Bytes() uint64 {
	if i == IDs32 {
		return 4
	}
	return 8
}

// DenseType is the element type of dense.
type DenseType uint8

// The element types. The numbers are part of the wire form.
const (
	DenseFloat32  DenseType = 0
	DenseBFloat16 DenseType = 1 // the float32 that a chain ends with, rounded as package fpga/unit/bfloat16 says
)

// Bytes returns the size of one element.
func (d DenseType) Bytes() uint64 {
	if d == DenseBFloat16 {
		return 2
	}
	return 4
}

// Align is the alignment of every tensor in the output range.
const Align = 64

// OutputLayout says where a mini-batch's tensors lie in the output range, in bytes from its start.
type OutputLayout struct {
	Dense, Lengths, Label, Values uint64
	Weights                       uint64 // 0 where there are none; see Output.LayoutIn
}

// Layout returns where the tensors of a mini-batch of rows rows lie: dense, lengths, label, each aligned to Align; the
// values, whose number is not known beforehand, come last.
func (o Output) Layout(rows uint32) OutputLayout {
	up := func(n uint64) uint64 { return (n + Align - 1) &^ (Align - 1) }
	var p OutputLayout
	at := up(uint64(rows) * uint64(o.Dense) * o.DenseType.Bytes())
	p.Lengths = at
	if !o.Fixed {
		at = up(at + uint64(rows)*uint64(o.Keys)*4)
	}
	p.Label = at
	if o.Label {
		at = up(at + uint64(rows)*4)
	}
	p.Values = at
	return p
}

// Unit names a unit of the image. The numbers are part of the wire form.
type Unit uint16

// The units of decoding, which are not operators and are listed by images, too.
const (
	UnitParquet Unit = 64
	UnitText    Unit = 65
	UnitMap     Unit = 66 // takes keys out of maps
)

// UnitNumbers is above the numbers of all units: tables by unit have this length.
const UnitNumbers = 128
