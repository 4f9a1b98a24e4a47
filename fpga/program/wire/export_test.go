package wire

import "github.com/millrace/millrace/fpga/program"

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
func AppendGraphs(p *program.Program, b []byte) []byte { return appendGraphs(p, b, nil) }

// AppendTexts appends the section of texts.
func AppendTexts(p *program.Program, b []byte) []byte { return appendTexts(p, b) }

// AppendMaps appends the section of maps.
func AppendMaps(p *program.Program, b []byte) []byte { return appendMaps(p, b) }

// ReadAgain writes the column, changes the bytes, and reads a column from them.
func ReadAgain(c *program.Column, change func(b []byte)) error {
	b := appendColumn(c, nil, nil)
	change(b)
	r := reader{what: "program", b: b}
	decodeColumn(new(program.Column), &r, &tableSet{})
	return r.err
}
