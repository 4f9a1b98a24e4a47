// Package ngram is the unit ngram: an id for every window of n consecutive ids of a list.
//
// # Overview
//
// DPP (Table XI) names NGram without a definition. This unit folds each window with the hash that SigridHash
// computes before its modulus: h = raw(first id, 0), and then h = raw(next id, h) for each further id of the window.
// The last h is the window's id. A list of L ids has L - n + 1 windows, in order, and none if n is above L. So a
// list never grows. n is 1 to MaxN, because every window is folded from its first id on.
//
// RAP's ngram yields the ids of all windows themselves and shortens n to the list's length; the unit does not.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// NGram returns ErrN if n is out of range, and ErrLengths if a length is negative or the lengths do not add up to
// the number of ids. It has written nothing then.
//
// # Debugging
//
// Reference is the definition, a list at a time.
package ngram
