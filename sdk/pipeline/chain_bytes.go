package pipeline

import (
	"math"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// describeBytes describes the content of a column of bytes and the way to use it.
func (c *chain) describeBytes() string {
	name, _, _ := strings.Cut(c.column.Logical, "(")
	switch name {
	case "":
		return "these are strings; begin with hex_to_int if they are hexadecimal, or hash_bytes for categories"
	case "DECIMAL":
		return "these are " + c.column.Logical + " kept as bytes; begin with decimal"
	case "INT96":
		return "these are times kept as INT96; begin with to_seconds or to_days"
	}
	if isCategory(c.column.Logical) {
		return "these are " + c.column.Logical + "; begin with hash_bytes for categories"
	}
	return "these are " + c.column.Logical + "; write the column as numbers, as INT64"
}

// describeNoTimes is describeBytes for operators that read times.
func (c *chain) describeNoTimes() string {
	if c.column.Logical == "" {
		return "these are strings; write times of text as TIMESTAMP before (pandas.to_datetime), or as whole seconds"
	}
	return c.describeBytes()
}

func applyHexToInt(c *chain, _ *Op, a location) {
	if c.kind != program.Bytes {
		c.refuse(a, ErrColumnType, "hex_to_int takes strings, and these are %v (the decoder of Criteo's rows reads "+
			"their ids itself)", c.kind)
		return
	}
	if c.column.Logical != "" {
		c.refuse(a, ErrColumnType, "hex_to_int takes text, and %s", c.describeBytes())
		return
	}
	c.appendOp(program.HexToInt{})
	c.kind, c.ids, c.bounded = program.Int64, idRange{0, math.MaxUint32}, false
	c.nulls.makes = true
}

var hashFunctions = map[string]program.HashFunction{
	"xxh3": program.HashXXH3, "murmur3_32": program.HashMurmur3, "farmhash64": program.HashFarmHash,
}

func applyHashBytes(c *chain, o *Op, a location) {
	switch {
	case c.kind != program.Bytes:
		c.refuse(a, ErrColumnType, "hash_bytes takes strings, and these are %v; sigrid_hash hashes ids", c.kind)
		return
	case !isCategory(c.column.Logical):
		c.refuse(a, ErrColumnType, "hash_bytes takes text, and %s", c.describeBytes())
		return
	}
	f := hashFunctions[c.word(o, "function")]
	c.appendOp(program.HashBytes{Function: f})
	c.kind, c.ids, c.bounded = program.Int64, idRange{math.MinInt64, math.MaxInt64}, false
	if f == program.HashMurmur3 {
		c.ids = idRange{math.MinInt32, math.MaxInt32}
	}
}
