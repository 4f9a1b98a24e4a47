package program

// Span is a run of bytes inside one memory range.
type Span struct{ Off, Len uint64 }

// End returns the offset behind the span.
func (s Span) End() uint64 { return s.Off + s.Len }

// In returns the span's bytes of a memory range; ok is false if the span does not lie inside it.
func (s Span) In(memory []byte) (b []byte, ok bool) {
	if s.Off > uint64(len(memory)) || s.Len > uint64(len(memory))-s.Off {
		return nil, false
	}
	return memory[s.Off : s.Off+s.Len : s.Off+s.Len], true
}

// Slice is one execution: a run of rows of one mini-batch times a run of columns. Its marshalled form is the
// argument of a Preprocess or Execute command.
type Slice struct {
	Digest   [32]byte     // SHA-256 of the program range's bytes; the engine refuses another program
	Program  uint64       // length of the program in the program range
	Rows     uint32       // rows of the whole mini-batch: strides of dense, lengths and, with Output.Fixed, values
	Layout   OutputLayout // where the mini-batch's tensors lie in the output range
	Values   uint64       // elements of kjt.values written by earlier slices of this mini-batch
	ValueCap uint64       // elements that the output range holds from Layout.Values on
	Tasks    []Task       // in key order
	// TablesChecked says that the engine verified the digests of the program's lookup tables over the bytes in the
	// tables range, and need not do so again. A host that writes the range clears it. Without it the engine verifies
	// every table before it does anything else.
	TablesChecked bool
}

// Task asks for some rows of one column (text: of all columns) from one window of its bytes.
//
// Every task writes rows [Row, Row+Count) of the mini-batch. Consecutive tasks may name the same column: a
// mini-batch that crosses row groups has one task per row group.
type Task struct {
	Column uint32 // index into Program.Columns; text: 0
	Row    uint32 // first row of the mini-batch that the task writes
	Count  uint32 // rows to write, at least 1

	Chunk  ChunkType // Parquet: how the chunk is encoded
	Window Span      // Window lies in the input range, and holds chunk bytes from WindowAt on.
	// WindowAt is the chunk offset (text: partition offset) of the window's first byte.
	WindowAt uint64
	// ChunkLen is the chunk's length (text: the partition's). A window that reaches it is the last one.
	ChunkLen uint64
	Cursor   Cursor
	Dict     Span // Dict lies in the dictionary range: the chunk's decoded dictionary, for a row group.
	Scratch  Span // Scratch lies in the scratch range: an unpacked page, or the decoded rows of text.
}

// ChunkType says how a column chunk is encoded; from the file's footer.
type ChunkType struct {
	Physical   uint8  // parquet.Type
	Codec      uint8  // parquet.CompressionCodec
	MaxDef     uint8  // definition level of a present value
	MaxRep     uint8  // 0 scalar, 1 list, 2 list in a map; lists in lists: how many lists deep
	ElementDef uint8  // lists: definition level at which an element exists, null or not (below it: null or empty list)
	EntryDef   uint8  // lists in a map or in lists: definition level at which an entry of the outermost exists
	Unsigned   bool   // INT(w, unsigned)
	BitWidth   uint8  // BitWidth is w of INT(w, signed): 8, 16, 32, 64; 0 if not annotated.
	TypeLength uint32 // FIXED_LEN_BYTE_ARRAY
	Values     uint64 // number of values (levels) in the chunk
	// Annotation says what the values stand for, for a Column whose Reading needs it. BitWidth is then 0.
	Annotation Annotation
	// RowsUncounted: v2 pages of lists say how many values they have instead of rows, and may begin inside a row.
	RowsUncounted bool
	// AlwaysCompressed: v2 pages are in Codec, even if their headers say that they are not compressed.
	AlwaysCompressed bool
	// Absent: the partition lacks the column, and each of the chunk's Values rows is null. The task has no window, and
	// the chunk no length and no other type. Only for a Column that is Absent.
	Absent bool
}

// Cursor is a place in a column chunk between two rows.
type Cursor struct {
	Page uint64 // chunk offset of a page header (text: partition offset of a row)
	// Skip is the number of rows to skip from that page on. A new task ignores leading elements that continue a row
	// begun on an earlier page.
	Skip uint64
	Seen uint64 // values (levels) of the chunk in the pages before Page
	// Unpacked: the page at Page lies unpacked at the start of Scratch, left there by the task that returned this
	// cursor. The window need not hold the page then, and may begin behind it; if the engine finds another page in
	// Scratch, it clears the flag and requests the window.
	Unpacked bool
	Dict     bool // the chunk's dictionary lies decoded in Dict
	// Checked says that the checksum of the page at Page was verified over the bytes in the window, and need not be
	// verified again. A host that moves those bytes again, or names another window, clears it.
	Checked bool
	// ValueAt is the byte of the unpacked page at Page where the value of the row behind Skip lies, of pages in which
	// finding it takes reading the values before it; 0: the engine finds it by itself. At most MaxValueAt. Of a column
	// of lists it is PageBeginsRow or 0.
	ValueAt uint32
	Ordinal uint32 // number of the page in its chunk, for errors (text: number of the line)
}

// MaxValueAt bounds Cursor.ValueAt: it has 29 bits. Greater pages have none.
const MaxValueAt = 1<<29 - 1

// PageBeginsRow is the ValueAt of a cursor in a column of lists whose page must begin with a row, since the page before
// ended its last row. It stays with the page, whatever Skip is.
const PageBeginsRow = 1

// State is how a slice or a task ended. The numbers are part of the wire form, and a slice's state is the 64-bit
// return value of its command.
type State uint16

// The states.
const (
	Done        State = 0  // all rows written
	Idle        State = 1  // task: not begun, because an earlier task or the check before execution stopped the slice
	MoreInput   State = 2  // the window ends early: Need bytes from the cursor's page on are wanted
	MoreDict    State = 3  // the dictionary needs Need bytes
	MoreScratch State = 4  // the unpacked page (text: the decoded rows) needs Need bytes of scratch
	MoreOutput  State = 5  // at least Need elements of kjt.values are wanted in all
	BadSlice    State = 16 // an offset, count or index of the slice is out of bounds
	BadProgram  State = 17 // the program is damaged, not the one that Digest names, or wants units this image lacks
	BadData     State = 18 // the column's bytes are damaged, or hold what the pipeline does not allow (a null, a NaN)
	NoSupport   State = 19 // an encoding, codec or type that the unit does not decode, or a module that it refuses
	BadTable    State = 20 // the tables range does not hold the lookup tables that the program names
)

// Result is the engine's answer to a slice. Before anything is written the engine checks every task against its
// window's page headers; if a task lacks memory or bytes, the slice's state is that of the first such task, every
// task reports its own need, and nothing has been executed (all Rows are 0). A list column may still run out of
// input while executing; then the tasks behind it are Idle and the host continues with a new slice from there.
type Result struct {
	State     State
	Values    uint64 // elements of kjt.values written for the mini-batch, earlier slices included
	Decode    uint64 // nanoseconds in decoding units
	Transform uint64 // nanoseconds in operator units
	BytesIn   uint64 // window bytes decoded
	BytesOut  uint64 // tensor bytes written
	Dropped   uint64 // text, MalformedDrop: rows dropped
	Wait      uint64 // nanoseconds that the command waited for an engine thread; the drive's to fill in, see Stamp
	Move      uint64 // nanoseconds that the command's moves took; see Stamp
	Tasks     []TaskResult
	Message   string // why, for states from BadSlice on; at most MaxMessage bytes
	// AbsentKey is the key for which a slice is BadData because a lookup table lacks it, under AbsentFail. Given is
	// false for other results.
	AbsentKey AbsentKey
}

// AbsentKey is a key that a lookup table lacks.
type AbsentKey struct {
	Given bool
	Row   uint32 // Row counts in the mini-batch.
	Key   uint32 // Key counts in the keyed jagged tensor.
	Value int64  // the key that was looked up
}

// MaxMessage bounds Result.Message.
const MaxMessage = 512

// TaskResult is the progress of one task.
type TaskResult struct {
	State  State
	Rows   uint32 // whole rows written
	Values uint64 // elements appended to kjt.values by this task
	Need   uint64 // see State
	// RowsInWindow, with MoreInput, is the number of rows from Cursor on that the window is known to hold. A host that
	// cannot enlarge the window asks for these rows; 0 means unknown.
	RowsInWindow uint32
	Cursor       Cursor // where to continue
	Page         uint32 // bytes of the page at Cursor, header included, where the task left off inside it; else 0
}
