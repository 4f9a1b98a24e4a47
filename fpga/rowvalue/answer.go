package rowvalue

import "github.com/millrace/millrace/fpga/program"

// Answer is a known answer of an operator: what the operator makes of a row. An operator declares its answers as
// Answers. The test of all references compares them, and the stock image has them as a self-test (package fpga/image).
type Answer struct {
	Op     Operator
	Inputs []any // one value for each input of the operator
	// Types are the types of the first inputs. The other inputs have the types of their values; the type of a null is that
	// of another answer of the same operator, or any that the operator takes.
	Types []program.ValueType
	Want  any
	// Fails says that the row is an error of the data. The self-test leaves such rows out.
	Fails bool
}

// InputTypes returns the types of the inputs. The kind is 0 if neither the answer nor the value says it, as for a null.
func (a *Answer) InputTypes() []program.ValueType {
	types := append([]program.ValueType{}, a.Types...)
	for _, in := range a.Inputs[len(types):] {
		types = append(types, TypeOf(in))
	}
	return types
}

// TypeOf returns the type of a value. It returns the kind 0 for a null and for the elements of a list without a first
// element.
func TypeOf(v any) program.ValueType {
	switch x := v.(type) {
	case int64:
		return program.ValueType{Kind: program.Int64}
	case float32:
		return program.ValueType{Kind: program.Float32}
	case float64:
		return program.ValueType{Kind: program.Float64}
	case []byte:
		return program.ValueType{Kind: program.Bytes}
	case ScoredList:
		return program.ValueType{Kind: program.Int64, List: true, Scored: true}
	case []any:
		of := program.ValueType{}
		if len(x) > 0 {
			of = TypeOf(x[0])
		}
		of.List = true
		return of
	}
	return program.ValueType{}
}
