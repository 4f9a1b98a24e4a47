// Package problem says what is wrong with a pipeline, and where.
//
// A pipeline is refused with [Errors], a list of one or more [Error]. Each has a place (line and column if the pipeline
// came from YAML, and a path such as dense[0].ops[1].clamp.min), the column or feature, and one of the sentinels
// ([ErrSyntax], [ErrUnknownOperator], [ErrMissingColumn], ...) for errors.Is. Whoever checks a pipeline collects errors
// in a [List], which bounds them and puts the same error of several columns together. [Suggest] proposes the name that
// was meant.
//
// The package is pure, and a List belongs to one goroutine.
package problem
