package problem

import (
	"fmt"
	"strings"
)

// Suggest returns "; did you mean "x"?" if a name is close to got, or lists the names if they are few.
func Suggest(got string, names []string) string {
	return SuggestAccepted(got, names, func(string) bool { return true })
}

// SuggestAccepted is suggest for names that would be accepted in the place of got.
func SuggestAccepted(got string, names []string, accepts func(name string) bool) string {
	best, bestDistance := "", 1+len(got)/3
	if got == "" || len(got) > 256 {
		return ""
	}
	for _, name := range names {
		if len(name) > 256 {
			continue
		}
		if d := distance(got, name); d <= bestDistance && (best == "" || d < bestDistance) && accepts(name) {
			best, bestDistance = name, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(names) > 0 && len(names) <= 16:
		return "; want one of " + strings.Join(names, ", ")
	}
	return ""
}

// distance returns the number of letters to insert, delete, change, or swap with their neighbour to turn a into b.
func distance(a, b string) int {
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(last[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
