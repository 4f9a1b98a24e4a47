package scoredlist

import (
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrLengths says that lengths are negative, differ in number, or do not add up to ids or scores.
	ErrLengths = errors.New("with_scores: lengths do not match the values")
	// ErrScores says that a row has another number of scores than of ids.
	ErrScores = errors.New("another number of scores than of ids")
)

// IDs is a list of ids a row, one behind the other.
type IDs struct {
	Lengths []int32
	IDs     []int64
}

// Scores is a list of scores a row, one behind the other. ForAll says that a row has at most one, which is the score of
// all its ids.
type Scores struct {
	Lengths []int32
	Scores  []float32
	ForAll  bool
}

// Lists is a list of ids a row with their scores.
type Lists struct {
	Lengths []int32
	IDs     []int64
	Scores  []float32
}

// AppendPositions appends to scores the positions of the ids of each list, from 0 on.
func AppendPositions(scores []float32, lengths []int32) []float32 {
	for _, n := range lengths {
		for position := range n {
			scores = append(scores, float32(position))
		}
	}
	return scores
}

// Join appends the rows of ids and scores. After an error it has appended nothing.
func (l *Lists) Join(ids IDs, scores Scores) error {
	if err := checkRows(ids, scores); err != nil {
		return err
	}
	l.Lengths, l.IDs = slices.Grow(l.Lengths, len(ids.Lengths)), slices.Grow(l.IDs, len(ids.IDs))
	l.Scores = slices.Grow(l.Scores, len(ids.IDs))
	fromIDs, fromScores := 0, 0
	for row, length := range ids.Lengths {
		n, m := int(length), int(scores.Lengths[row])
		rowIDs, rowScores := ids.IDs[fromIDs:][:n], scores.Scores[fromScores:][:m]
		fromIDs, fromScores = fromIDs+n, fromScores+m
		if n == 0 || m == 0 {
			l.Lengths = append(l.Lengths, 0)
			continue
		}
		l.Lengths, l.IDs = append(l.Lengths, length), append(l.IDs, rowIDs...)
		if !scores.ForAll {
			l.Scores = append(l.Scores, rowScores...)
			continue
		}
		for range n {
			l.Scores = append(l.Scores, rowScores[0])
		}
	}
	return nil
}

// checkRows checks that ids and scores have the same rows, and that these have the lengths that the parameters promise.
func checkRows(ids IDs, scores Scores) error {
	if len(ids.Lengths) != len(scores.Lengths) {
		return fmt.Errorf("%d rows of ids and %d of scores: %w", len(ids.Lengths), len(scores.Lengths), ErrLengths)
	}
	var sumIDs, sumScores int64
	for row, n := range ids.Lengths {
		m := scores.Lengths[row]
		switch {
		case n < 0 || m < 0:
			return fmt.Errorf("row %d has lengths %d and %d: %w", row, n, m, ErrLengths)
		case n == 0 || m == 0:
		case scores.ForAll && m > 1, !scores.ForAll && n != m:
			return fmt.Errorf("row %d has %d ids and %d scores: %w", row, n, m, ErrScores)
		}
		sumIDs, sumScores = sumIDs+int64(n), sumScores+int64(m)
	}
	if sumIDs != int64(len(ids.IDs)) || sumScores != int64(len(scores.Scores)) {
		return fmt.Errorf("lengths add up to %d and %d, there are %d ids and %d scores: %w", sumIDs, sumScores,
			len(ids.IDs), len(scores.Scores), ErrLengths)
	}
	return nil
}
