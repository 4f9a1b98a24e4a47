package rowvalue

import "github.com/millrace/millrace/fpga/program"

// ScoredList is a row's list of ids with scores.
type ScoredList struct {
	IDs    []any
	Scores []float32
}

// WithoutScores returns a row's value without the scores of its ids.
func WithoutScores(v any) any {
	if list, ok := v.(ScoredList); ok {
		return list.IDs
	}
	return v
}

// HoldsNull reports whether an element of a list is null.
func HoldsNull(list []any) bool {
	for _, v := range list {
		if v == nil {
			return true
		}
	}
	return false
}

// IDs returns the ids of a row's value, of which a scalar is one. A null has none, and neither has a list that holds a
// null.
func IDs(v any) []int64 { return elements[int64](WithoutScores(v)) }

// Scores returns the scores that a row's value stands for, as IDs returns ids.
func Scores(v any) []float32 { return elements[float32](v) }

// elements returns the scalars of a row's value.
func elements[T any](v any) []T {
	list, isList := v.([]any)
	switch {
	case v == nil, isList && HoldsNull(list):
		return nil
	case !isList:
		return []T{v.(T)}
	}
	all := make([]T, len(list))
	for i, e := range list {
		all[i] = e.(T)
	}
	return all
}

// List returns scalars as a row's list.
func List[T any](all []T) []any {
	list := make([]any, len(all))
	for i, v := range all {
		list[i] = v
	}
	return list
}

// Number returns a constant of a kind: integer for Int64, else the number nearest to float.
func Number(kind program.Kind, integer int64, float float64) any {
	switch kind {
	case program.Float32:
		return float32(float)
	case program.Float64:
		return float
	}
	return integer
}
