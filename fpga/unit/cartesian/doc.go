// Package cartesian is the unit cartesian: an id for every pair of ids of two lists.
//
// # Overview
//
// DPP (Table XI) names Cartesian without a definition. This unit takes the pairs row-major (the first id of the first
// list with each id of the second, then its second id, and so on) and makes of a pair the hash that SigridHash computes
// before its modulus, of the second id with the first id as its salt. A row makes the product of its lists' lengths;
// [Params] bounds the ids of a row, and says what becomes of a row with more: the first ids are kept, or the row is an
// error.
//
// [Lists] takes a row's ids from lists; a scalar is a list of one id, or of none if it is null.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Lists returns ErrLengths if lengths are negative, differ in number, or do not add up to the ids; ErrTooLong, with the
// row, if a row would make too many ids and Params.Fail is set; and ErrMaxLength if the bound is out of range.
//
// # Debugging
//
// Reference is the definition, a row at a time.
package cartesian
