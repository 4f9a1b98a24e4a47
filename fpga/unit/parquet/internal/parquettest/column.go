package parquettest

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Column is a column to be written, and the rows that it must read as.
type Column struct {
	Shape           Shape
	Physical        format.Type
	Length          int32 // Length is that of fixed-length byte arrays.
	Unsigned        bool
	Codec           format.Codec
	V2              bool
	Encoding        format.Encoding // Encoding is that of the values.
	MSBLevels       bool            // BIT_PACKED levels (v1)
	CRC             bool
	SplitRows       bool // rows continue over pages (v1 lists)
	PageRows        int  // 0: one page
	OmitEmptyDeltas bool // pages of nulls in a DELTA encoding leave out even its header
	Rows            []any
	// PlainRuns writes runs as common writers do: of one value from 8 on, else packed.
	PlainRuns bool
}

// String describes the column, for messages of tests.
func (c *Column) String() string {
	return fmt.Sprintf("shape %d %v/%d unsigned %t %v v2 %t %v msb %t crc %t split %t pages of %d, %d rows", c.Shape,
		c.Physical, c.Length, c.Unsigned,
		c.Codec, c.V2, c.Encoding, c.MSBLevels, c.CRC, c.SplitRows, c.PageRows, len(c.Rows))
}
