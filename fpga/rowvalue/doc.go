// Package rowvalue says what the reference of an operator is: a function from the values of one row to a value.
//
// # Values
//
//	nil                              a null, or a null list
//	int64, float32, float64, []byte  a scalar
//	[]any                            a list of scalars and nulls
//	ScoredList                       a list of ids with a score each
//	[]float32                        neighbouring dense columns, which only the last operator of a chain makes
//
// # References
//
// An operator's package NAME/reference (fpga/operator) has a [Constructor] New, which makes a [Reference] of the
// operator's parameters and the types of its inputs. A constructor states its null rule by what it returns: [OfValues]
// for an operator of scalars that leaves nulls alone, [OfElements] for one that takes them, [OfLists] for one of whole
// lists. Any other function is a Reference too.
//
// An [Environment] holds what all references of a program share: modules, lookup tables, and results of functions that
// are expensive to compute by their definition.
//
// # Errors
//
// An error wraps [ErrData] where the row is at fault.
//
// # Concurrency
//
// The references of one environment belong to one goroutine at a time.
package rowvalue
