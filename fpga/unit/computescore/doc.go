// Package computescore is the unit compute_score: how alike two lists of ids are, one number a row.
//
// # Overview
//
// The eight functions are TorchArrow's (csrc/velox/functions/rec/compute_score.h), which DPP names ComputeScore (Table
// XI). They compare the ids of the first list, with a score each for [CosineSimilarity], with the matching ids, which
// have a score each for CosineSimilarity, [ScoreSum], [ScoreMin] and [ScoreMax]:
//
//	HasIDOverlap       1 if an id is in both lists, else 0
//	IDOverlapCount     how many ids are in both lists; an id counts as often as in the list that has it less often
//	MaxCount           the same, as often as in the list that has it more often
//	JaccardSimilarity  IDOverlapCount c of lists of n and m ids: c / (n + m - c); NaN if both are empty
//	CosineSimilarity   the scores of equal ids are summed; the inner product over the product of the norms
//	ScoreSum           the sum of the matching scores whose ids are in the first list
//	ScoreMin, ScoreMax the least and the greatest of these scores; 0 if there is none
//
// A result is the float32 nearest to the exact value of the whole expression, ties to even. TorchArrow rounds each
// step, in the order of its hash table. So a result depends on no order of the ids. A NaN that is made is 7fc00000h.
// ScoreMin takes -0 as less than 0, and so does ScoreMax. A NaN among the scores that ScoreSum, ScoreMin or ScoreMax
// takes makes the result NaN; a NaN or infinite score makes a CosineSimilarity NaN.
//
// A side whose ids or whose scores are empty has neither ids nor scores.
//
// The kernel computes in float64 with a bound of its error. Where that does not decide the nearest float32, it computes
// again with as many bits as it takes.
//
// # Concurrency
//
// A Scorer keeps buffers and is used by one goroutine at a time.
//
// # Errors
//
// Score returns ErrLengths if lengths are negative, differ in number, or do not add up to ids and scores; ErrScores,
// with the row, if a row has another number of scores than ids; ErrZeroNorm, with the row, if a norm of a
// CosineSimilarity is 0 and Params.ZeroNorm is not set; ErrFunction if the function is unknown.
//
// # Debugging
//
// Reference is the definition, a row at a time, with rational numbers.
package computescore
