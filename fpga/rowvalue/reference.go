package rowvalue

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// ErrData says that the partition holds a value that the pipeline does not allow: a token that is not a number, a NaN
// under nan: error, a null that reaches dense or label, an id that does not fit.
var ErrData = errors.New("bad data")

// Operator is a [program.Op] or a [program.Combiner].
type Operator interface{ Unit() program.Unit }

// Reference returns what an operator makes of a row. It is called with one value for each input of the operator.
type Reference func(inputs []any) (any, error)

// Constructor makes the reference of an operator whose inputs have the given types. The operator is valid for them.
type Constructor func(op Operator, inputs []program.ValueType, env *Environment) (Reference, error)

// OfValues returns the reference of an operator that makes one value of one scalar. A null stays null, and a list that
// holds a null becomes a null list.
func OfValues[V any](f func(V) (any, error)) Reference {
	apply := func(v any) (any, error) {
		x, ok := v.(V)
		if !ok {
			return nil, UnexpectedValue(v)
		}
		return f(x)
	}
	return func(inputs []any) (any, error) {
		switch v := inputs[0].(type) {
		case nil:
			return nil, nil
		case []any:
			if HoldsNull(v) {
				return nil, nil
			}
			return mapElements(v, apply)
		default:
			return apply(v)
		}
	}
}

// OfElements returns the reference of an operator that makes one value of one scalar or null, also inside lists. A null
// list stays null.
func OfElements(input program.ValueType, f func(v any) (any, error)) Reference {
	return func(inputs []any) (any, error) {
		if list, ok := inputs[0].([]any); ok {
			return mapElements(list, f)
		}
		if input.List {
			return nil, nil
		}
		return f(inputs[0])
	}
}

// OfLists returns the reference of an operator that makes one list of one list. A null list, and a list that holds a
// null, become a null list.
func OfLists(f func(list []any) (any, error)) Reference {
	return func(inputs []any) (any, error) {
		switch v := inputs[0].(type) {
		case nil:
			return nil, nil
		case []any:
			if HoldsNull(v) {
				return nil, nil
			}
			return f(v)
		default:
			return nil, UnexpectedValue(v)
		}
	}
}

// mapElements returns what f makes of each element.
func mapElements(list []any, f func(v any) (any, error)) (any, error) {
	out := make([]any, len(list))
	for i, v := range list {
		var err error
		if out[i], err = f(v); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return out, nil
}

// UnexpectedValue returns the error for a value that is not of the types for which a reference was made.
func UnexpectedValue(v any) error {
	return fmt.Errorf("a value of the type %T, which the operator does not take: validate the program first", v)
}
