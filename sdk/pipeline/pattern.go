package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRange bounds the columns that one range names.
const maxRange = MaxFeatures

// matchPattern returns the columns that a pattern names, or an error without a location. accepts reports whether a
// column may be proposed in the error.
func matchPattern(text string, schema []ColumnInfo, byName map[string]int,
	accepts func(name string) bool) ([]columnRef, *Error) {
	if i, ok := byName[text]; ok {
		return []columnRef{{column: i}}, nil
	}
	if found, wrong, ok := matchMap(text, schema, byName); ok {
		return found, wrong
	}
	if first, last, ok := strings.Cut(text, ".."); ok {
		return matchRange(text, first, last, byName)
	}
	if strings.Contains(text, "*") {
		var found []columnRef
		for i := range schema {
			if matchesGlob(text, schema[i].Name) {
				found = append(found, columnRef{column: i})
			}
		}
		if len(found) == 0 {
			return nil, patternError(ErrPattern, "%q matches no column", shorten(text))
		}
		return found, nil
	}
	wrong := patternError(ErrMissingColumn, "%q is not in the dataset%s", shorten(text),
		suggestAccepted(text, names(schema), accepts))
	wrong.missing = text
	return nil, wrong
}

// patternError returns an error without a location.
func patternError(err error, format string, args ...any) *Error {
	return &Error{Err: err, Detail: fmt.Sprintf(format, args...)}
}

// matchRange expands prefix_0..prefix_12.
func matchRange(text, first, last string, byName map[string]int) ([]columnRef, *Error) {
	prefix, lo := splitNumber(first)
	prefix2, hi := splitNumber(last)
	bad := func(format string, args ...any) ([]columnRef, *Error) {
		return nil, patternError(ErrPattern, "%q: %s", shorten(text), fmt.Sprintf(format, args...))
	}
	if lo == "" || hi == "" {
		return bad("a range goes from one numbered column to another, as int_0..int_12")
	}
	if prefix != prefix2 {
		return bad("the names before the numbers differ")
	}
	a, errA := strconv.ParseUint(lo, 10, 31)
	b, errB := strconv.ParseUint(hi, 10, 31)
	digits := 0
	switch {
	case errA != nil || errB != nil:
		return bad("a number is too large")
	case a > b:
		return bad("the first number is above the last")
	case b-a >= maxRange:
		return bad("%d columns, want at most %d", b-a+1, maxRange)
	case lo[0] == '0' && len(lo) > 1 || hi[0] == '0' && len(hi) > 1:
		if len(lo) != len(hi) {
			return bad("numbers that begin with 0 must be of one length")
		}
		digits = len(lo)
	}
	var found []columnRef
	for n := a; n <= b; n++ {
		name := prefix + fmt.Sprintf("%0*d", digits, n)
		i, ok := byName[name]
		if !ok {
			return nil, patternError(ErrMissingColumn, "%q, of %q, is not in the dataset", shorten(name), shorten(text))
		}
		found = append(found, columnRef{column: i})
	}
	return found, nil
}

// names returns the names of all columns.
func names(schema []ColumnInfo) []string {
	list := make([]string, len(schema))
	for i := range schema {
		list[i] = schema[i].Name
	}
	return list
}

// splitNumber returns the digits of the decimal number at the end of a name, and the part before it.
func splitNumber(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	return name[:i], name[i:]
}

// matchesGlob reports whether name is pattern with every * replaced by some text, perhaps none.
func matchesGlob(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return len(name) >= len(last) && strings.HasSuffix(name, last)
}

// expandName replaces the braces in the name of a feature by the column's name, the digits at its end, or its index in
// the group. wrong says what is wrong with the braces.
func expandName(as, column, digits string, index int) (name, wrong string) {
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
			return "", fmt.Sprintf("%q: a brace without its other", shorten(as))
		}
		switch rest[:end+1] {
		case "{column}":
			b.WriteString(column)
		case "{i}":
			b.WriteString(strconv.Itoa(index))
		case "{n}":
			if digits == "" {
				return "", fmt.Sprintf("%q: the column has no number at its end for {n}; use {column} or {i}",
					shorten(as))
			}
			b.WriteString(digits)
		default:
			return "", fmt.Sprintf("%q: %s, want {n}, {i} or {column}", shorten(as), shorten(rest[:end+1]))
		}
		rest = rest[end+1:]
	}
	return b.String(), ""
}
