// Package ngram is the unit ngram: windows of n consecutive ids of a list, folded to an id each or listed.
//
// # Overview
//
// DPP (Table XI) names NGram without a definition. This unit folds each window with the hash that SigridHash
// computes before its modulus: h = raw(first id, 0), and then h = raw(next id, h) for each further id of the window.
// The last h is the window's id. A list of L ids has L - n + 1 windows, in order, and none if n is above L. So a
// list never grows. n is 1 to MaxN, because every window is folded from its first id on.
//
// List is RAP's ngram instead: it lists the ids of all windows, one window behind the other. n is shortened to the
// list's length first, so that a list of L ids becomes (L - n + 1) * n ids, and an empty list stays empty.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Both functions return ErrN if n is out of range, and ErrLengths if a length is negative or the lengths do not add up
// to the number of ids. List returns ErrTooLong if the windows of a list hold more than MaxListed ids. They have
// written nothing then.
//
// # Debugging
//
// Reference and ListReference are the definitions, a list at a time.
package ngram
