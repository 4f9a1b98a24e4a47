package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRange bounds the columns that one range names.
const maxRange = maxFeatures

// match returns the columns that a pattern names, or what is wrong, without a place.
// Of the columns that it might mean, those are proposed that would be taken.
func match(text string, schema []ColumnInfo, byName map[string]int, taken func(name string) bool) ([]named, *Error) {
	if i, ok := byName[text]; ok {
		return []named{{column: i}}, nil
	}
	if found, wrong, ok := matchMap(text, schema, byName); ok {
		return found, wrong
	}
	if first, last, ok := strings.Cut(text, ".."); ok {
		return matchRange(text, first, last, byName)
	}
	if strings.Contains(text, "*") {
		var found []named
		for i := range schema {
			if glob(text, schema[i].Name) {
				found = append(found, named{column: i})
			}
		}
		if len(found) == 0 {
			return nil, mismatch(ErrPattern, "%q matches no column", clip(text))
		}
		return found, nil
	}
	return nil, mismatch(ErrMissingColumn, "%q is not in the dataset%s", clip(text), suggestThat(text, names(schema), taken))
}

func mismatch(err error, format string, args ...any) *Error {
	return &Error{Err: err, Detail: fmt.Sprintf(format, args...)}
}

// matchRange expands prefix_0..prefix_12.
func matchRange(text, first, last string, byName map[string]int) ([]named, *Error) {
	prefix, lo := splitNumber(first)
	prefix2, hi := splitNumber(last)
	bad := func(format string, args ...any) ([]named, *Error) {
		return nil, mismatch(ErrPattern, "%q: %s", clip(text), fmt.Sprintf(format, args...))
	}
	if lo == "" || hi == "" {
		return bad("a range goes from one numbered column to another, as int_0..int_12")
	}
	if prefix != prefix2 {
		return bad("the names before the numbers differ")
	}
	a, errA := strconv.ParseUint(lo, 10, 31)
	b, errB := strconv.ParseUint(hi, 10, 31)
	width := 0
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
		width = len(lo)
	}
	var found []named
	for n := a; n <= b; n++ {
		name := prefix + fmt.Sprintf("%0*d", width, n)
		i, ok := byName[name]
		if !ok {
			return nil, mismatch(ErrMissingColumn, "%q, of %q, is not in the dataset", clip(name), clip(text))
		}
		found = append(found, named{column: i})
	}
	return found, nil
}

func names(schema []ColumnInfo) []string {
	list := make([]string, len(schema))
	for i := range schema {
		list[i] = schema[i].Name
	}
	return list
}

// splitNumber parts a name into what comes before the decimal number at its end, and the number's digits.
func splitNumber(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	return name[:i], name[i:]
}

// glob reports whether name is pattern with every * replaced by some text, perhaps none.
func glob(pattern, name string) bool {
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

// expandName fills in the braces of a feature's name, with a column's name and the number at its end, or says what is wrong with them.
func expandName(as, column, digits string, place int) (name, wrong string) {
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
			return "", fmt.Sprintf("%q: a brace without its other", clip(as))
		}
		switch rest[:end+1] {
		case "{column}":
			b.WriteString(column)
		case "{i}":
			b.WriteString(strconv.Itoa(place))
		case "{n}":
			if digits == "" {
				return "", fmt.Sprintf("%q: the column has no number at its end for {n}; use {column} or {i}", clip(as))
			}
			b.WriteString(digits)
		default:
			return "", fmt.Sprintf("%q: %s, want {n}, {i} or {column}", clip(as), clip(rest[:end+1]))
		}
		rest = rest[end+1:]
	}
	return b.String(), ""
}
