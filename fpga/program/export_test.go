package program

// What tests of the wire form need of its parts.
const (
	HeaderSize     = headerSize
	SectionSize    = sectionSize
	DenseSize      = denseSize
	SourceSize     = sourceSize
	OpSize         = opSize
	LengthOffset   = lengthOffset
	CRCOffset      = crcOffset
	FlagRequired   = flagRequired
	ColumnFlags    = columnFlags
	ChunkAnnotated = chunkAnnotated
	SectionTexts   = sectionTexts
	SectionMaps    = sectionMaps
	SectionGraphs  = sectionGraphs
	SectionDense   = sectionDense
	AbsentOffset   = absentOffset
)

var (
	Checksum      = checksum
	AppendSection = appendSection
)

// AppendGraphs appends the section of graphs.
func (p *Program) AppendGraphs(b []byte) []byte { return p.appendGraphs(b, nil) }

// AppendTexts appends the section of texts.
func (p *Program) AppendTexts(b []byte) []byte { return p.appendTexts(b) }

// AppendMaps appends the section of maps.
func (p *Program) AppendMaps(b []byte) []byte { return p.appendMaps(b) }

// ValidateReading checks how a column is read.
func (c *Column) ValidateReading(s Source) error { return c.validateReading(s) }

// ReadAgain writes the column, changes the bytes, and reads a column from them.
func (c *Column) ReadAgain(change func(b []byte)) error {
	b := c.appendTo(nil, nil)
	change(b)
	r := reader{what: "program", b: b}
	new(Column).decodeFrom(&r, &tableSet{})
	return r.err
}

// CheckedTwice checks an operator twice for one program, and returns both errors. between runs between the checks.
func CheckedTwice(op Op, in Input, between func()) (first, second error) {
	in.checked = checkedLists{}
	first = op.Check(in)
	between()
	return first, op.Check(in)
}
