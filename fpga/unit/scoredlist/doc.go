// Package scoredlist is the units enumerate and with_scores: lists of ids of which each has a score.
//
// # Overview
//
// DPP (Table XI) describes Enumerate as "similar to Python's enumerate()", and no public text says more. The unit
// enumerate keeps the ids of a list and gives each its position as its score, counted from 0 and rounded to float32.
//
// The unit with_scores puts ids and scores together, which come from two places. A row's scores are as many as its ids,
// or one for all of them. A row that lacks ids or scores has neither.
//
// The unit scores, which takes the scores of such a list as numbers, copies nothing and has no code here.
//
// # Concurrency
//
// The functions keep nothing. Lists belongs to one goroutine at a time.
//
// # Errors
//
// Join returns ErrLengths if lengths are negative, differ in number, or do not add up to ids and scores, and ErrScores
// if a row has another number of scores than of ids. It has appended nothing then.
//
// # Debugging
//
// ReferencePositions and ReferenceJoin are the definitions, a row at a time.
package scoredlist
