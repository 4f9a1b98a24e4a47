package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// SplitNumber returns the digits of the decimal number at the end of a name, and the part before it.
func SplitNumber(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	return name[:i], name[i:]
}

// FeatureName replaces the braces in the name of a feature by the column's name, the digits at its end, or its index in
// the group. wrong says what is wrong with the braces.
func FeatureName(as, column, digits string, index int) (name, wrong string) {
	if as == "" {
		return column, ""
	}
	var b strings.Builder
	for rest := as; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		end := strings.IndexByte(rest, '}')
		if rest[0] == '}' || end < 0 {
			return "", fmt.Sprintf("%q: a brace without its other", problem.Shorten(as))
		}
		switch rest[:end+1] {
		case "{column}":
			b.WriteString(column)
		case "{i}":
			b.WriteString(strconv.Itoa(index))
		case "{n}":
			if digits == "" {
				return "", fmt.Sprintf("%q: the column has no number at its end for {n}; use {column} or {i}",
					problem.Shorten(as))
			}
			b.WriteString(digits)
		default:
			return "", fmt.Sprintf("%q: %s, want {n}, {i} or {column}", problem.Shorten(as), problem.Shorten(rest[:end+1]))
		}
		rest = rest[end+1:]
	}
	return b.String(), ""
}
