// Package idlisttransform is the unit id_list_transform: the ids of one list that are in another.
//
// # Overview
//
// DPP (Table XI) describes IdListTransform as the intersection of two sparse lists. This unit makes what Presto's and
// Velox' array_intersect make: the ids of the first list that occur in the second, each once, in the order in which
// they first occur in the first list.
//
// [Intersection.Lists] takes a row's ids from lists; a scalar is a list of one id, or of none if it is null. Short
// lists are compared id by id, and long ones by a sorted copy of the second list, so that no input takes quadratic
// time.
//
// # Concurrency
//
// An Intersection keeps working memory and belongs to one goroutine at a time.
//
// # Errors
//
// Lists returns ErrLengths if lengths are negative, differ in number, or do not add up to the ids. It has appended
// nothing then.
//
// # Debugging
//
// Reference is the definition, a row at a time.
package idlisttransform
