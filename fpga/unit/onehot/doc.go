// Package onehot is the unit onehot: which of several classes a value is of.
//
// # Overview
//
// DPP (Table XI) names Onehot without a definition. A value becomes one number for each class: 1 for its own class and
// 0 for the others. The unit yields the number of the class, or -1 for none; the engine writes the columns.
//
// [Classes.IDs] takes ids: the class is the id, and ids that are no class have none.
//
// [Classes.Ranges] takes real numbers, as RAP does: the range from Lower to Upper is divided into Count equal parts,
// and the class is the part that holds the number: trunc((x - Lower) / step), step = (Upper - Lower) / Count, each
// operation rounded to float32. What lies outside is of class 0, as there; so is a NaN, for which RAP has no
// definition. Unlike in RAP, Upper itself is of the last class: it is the greatest value that min_max yields.
//
// # Concurrency
//
// Classes is immutable and may be shared by goroutines.
//
// # Errors
//
// New returns ErrCount if the number of classes is out of range, and NewRanges also ErrRange if the bounds are not
// finite, do not ascend, or leave a step of 0.
//
// # Debugging
//
// Reference and ReferenceRange are the definitions, a value at a time.
package onehot
