package computescore

import "errors"

var (
	// ErrLengths says that lengths are negative, differ in number, or do not add up to the ids and scores.
	ErrLengths = errors.New("compute_score: lengths do not match the ids and scores")
	// ErrScores says that a row has another number of scores than ids.
	ErrScores = errors.New("compute_score: another number of scores than ids")
	// ErrZeroNorm says that the scores of a side have the norm 0, so that there is no cosine.
	ErrZeroNorm = errors.New("compute_score: a norm is 0")
	// ErrFunction says that a function is unknown.
	ErrFunction = errors.New("compute_score: unknown function")
)

// Function is what is computed.
type Function uint8

// The functions.
const (
	HasIDOverlap Function = iota
	IDOverlapCount
	MaxCount
	JaccardSimilarity
	CosineSimilarity
	ScoreSum
	ScoreMin
	ScoreMax
)

// InputScores reports whether the function takes scores of the first list.
func (f Function) InputScores() bool { return f == CosineSimilarity }

// MatchingScores reports whether the function takes scores of the matching list.
func (f Function) MatchingScores() bool { return f >= CosineSimilarity }

// Params are the parameters of the unit.
type Params struct {
	Function Function
	ZeroNorm bool // a CosineSimilarity with a norm of 0 is 0, and no error
}

// Side is the lists of one side, a list a row, one behind the other. The scores are not read by functions that take
// none of the side.
type Side struct {
	Lengths      []int32
	IDs          []int64
	ScoreLengths []int32
	Scores       []float32
}
