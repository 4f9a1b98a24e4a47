package unpack

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "unpack", Unit: Unit,
	Example: "- unpack: float32",
	Cost:    catalogue.Costs(0.7),
	Summary: "Makes a list of numbers of the bytes of an array, as embeddings are kept by `ndarray.tobytes`: " +
		"little-endian numbers one behind the other. Put `fixed_length` behind it to make dense columns of them.",
	Params: []catalogue.Param{
		{Name: "element", Type: catalogue.ParamChoice, Choices: []string{"float32"},
			Summary: "type of the packed numbers"},
	},
	Takes: "bytes, one value a row", Yields: "lists of float32, a quarter as long as the bytes",
	Nulls: "become empty lists, as null lists are elsewhere",
	Lists: "refused; a value without bytes becomes an empty list",
	Errors: "the column is not bytes, or bytes that the file says are something else. A value whose length is not a " +
		"multiple of 4, or that begins as a file of NumPy (`numpy.save`, Petastorm's `NdarrayCodec`), fails the split " +
		"with its row",
	Source: "ours; NumPy's `frombuffer` with `<f4`, Arrow's and Parquet's order of bytes",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	switch {
	case c.Kind() != program.Bytes:
		c.Refuse(catalogue.ErrColumnType, "unpack takes bytes, and these are %v: leave unpack out", c.Kind())
	case c.Logical() != "":
		c.Refuse(catalogue.ErrColumnType, "unpack takes bytes, and %s", c.DescribeBytes())
	case c.IsList():
		c.Refuse(catalogue.ErrColumnType, "unpack takes one value a row, and these are lists: write one array a row")
	default:
		c.BeginStep(Op{Type: Float32})
	}
}
