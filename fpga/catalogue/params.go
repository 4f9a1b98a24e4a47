package catalogue

import "math"

// ParamType is the type of a parameter.
type ParamType uint8

// The types of parameters.
const (
	ParamInteger   ParamType = iota + 1 // Number with Integer set, from Min on
	ParamNumber                         // Number; must be whole when the column's values are
	ParamReal                           // Number, read as a real number
	ParamChoice                         // Text, one of Choices
	ParamBorders                        // Borders
	ParamText                           // Text
	ParamTable                          // IDTable
	ParamWords                          // Words, each one of Choices
	ParamTextTable                      // TextTable
)

// Param is a parameter of an operator.
type Param struct {
	Name     string
	Type     ParamType
	Default  Value // nil: none
	Optional bool  // may be left out though it has no default
	Alone    bool  // may be written alone, though the operator has other parameters
	Min      int64 // least value of an integer
	Choices  []string
	Summary  string
}

// Required reports whether the parameter must be given.
func (p *Param) Required() bool { return p.Default == nil && !p.Optional }

// AnyInteger is the least value of an integer that may be any.
const AnyInteger = math.MinInt64
