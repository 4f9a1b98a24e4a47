package pipeline

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// A pipeline in Go is written with these types, which package catalogue declares.
type (
	// Value is the value of a parameter.
	Value = catalogue.Value
	// Number is a number as it was written.
	Number = catalogue.Number
	// Text is one word of a choice.
	Text = catalogue.Text
	// Words are words of a choice.
	Words = catalogue.Words
	// Borders are the borders of buckets.
	Borders = catalogue.Borders
	// LogSpaced makes borders.
	LogSpaced = catalogue.LogSpaced
	// IDTable is pairs of integers.
	IDTable = catalogue.IDTable
	// TextTable is pairs of a text and an integer.
	TextTable = catalogue.TextTable
	// Param is a parameter of an operator.
	Param = catalogue.Param
	// Pos is a place in a document.
	Pos = catalogue.Pos
)

// The types of parameters.
const (
	ParamInteger   = catalogue.ParamInteger
	ParamNumber    = catalogue.ParamNumber
	ParamReal      = catalogue.ParamReal
	ParamChoice    = catalogue.ParamChoice
	ParamBorders   = catalogue.ParamBorders
	ParamText      = catalogue.ParamText
	ParamTable     = catalogue.ParamTable
	ParamWords     = catalogue.ParamWords
	ParamTextTable = catalogue.ParamTextTable
)

// Int returns a whole number.
func Int(n int64) Number { return catalogue.Int(n) }

// Real returns a number that need not be whole.
func Real(x float64) Number { return catalogue.Real(x) }
