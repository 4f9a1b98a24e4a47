package resolve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// maxRange bounds the columns that one range names.
const maxRange = pipeline.MaxFeatures

// Index finds the columns of a schema by the patterns of a document.
type Index struct {
	schema []columntypes.Column
	byName map[string]int  // The first column of each name.
	twice  map[string]bool // Names that more than one column has.
}

// NewIndex returns the index of a schema.
func NewIndex(schema []columntypes.Column) *Index {
	x := &Index{schema: schema, byName: make(map[string]int, len(schema)), twice: make(map[string]bool)}
	for i := range schema {
		if _, twice := x.byName[schema[i].Name]; twice {
			x.twice[schema[i].Name] = true
		} else {
			x.byName[schema[i].Name] = i
		}
	}
	return x
}

// IsTwice reports whether several columns have a name.
func (x *Index) IsTwice(name string) bool { return x.twice[name] }

// Match returns the columns that a pattern names, or an error without a location. accepts reports whether a column may
// be proposed in the error; nil accepts every column.
func (x *Index) Match(text string, accepts func(name string) bool) ([]Reference, *problem.Error) {
	if i, ok := x.byName[text]; ok {
		return []Reference{{Column: i}}, nil
	}
	if found, wrong, ok := x.matchMap(text); ok {
		return found, wrong
	}
	if first, last, ok := strings.Cut(text, ".."); ok {
		return x.matchRange(text, first, last)
	}
	if strings.Contains(text, "*") {
		var found []Reference
		for i := range x.schema {
			if matchesGlob(text, x.schema[i].Name) {
				found = append(found, Reference{Column: i})
			}
		}
		if len(found) == 0 {
			return nil, patternError(problem.ErrPattern, "%q matches no column", problem.Shorten(text))
		}
		return found, nil
	}
	if accepts == nil {
		accepts = func(string) bool { return true }
	}
	wrong := patternError(problem.ErrMissingColumn, "%q is not in the dataset%s", problem.Shorten(text),
		problem.SuggestAccepted(text, x.names(), accepts))
	wrong.Missing = text
	return nil, wrong
}

// patternError returns an error without a location.
func patternError(err error, format string, args ...any) *problem.Error {
	return &problem.Error{Err: err, Detail: fmt.Sprintf(format, args...)}
}

// matchRange expands prefix_0..prefix_12.
func (x *Index) matchRange(text, first, last string) ([]Reference, *problem.Error) {
	prefix, lo := pipeline.SplitNumber(first)
	prefix2, hi := pipeline.SplitNumber(last)
	bad := func(format string, args ...any) ([]Reference, *problem.Error) {
		return nil, patternError(problem.ErrPattern, "%q: %s", problem.Shorten(text), fmt.Sprintf(format, args...))
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
	var found []Reference
	for n := a; n <= b; n++ {
		name := prefix + fmt.Sprintf("%0*d", digits, n)
		i, ok := x.byName[name]
		if !ok {
			return nil, patternError(problem.ErrMissingColumn, "%q, of %q, is not in the dataset", problem.Shorten(name),
				problem.Shorten(text))
		}
		found = append(found, Reference{Column: i})
	}
	return found, nil
}

// names returns the names of all columns.
func (x *Index) names() []string {
	list := make([]string, len(x.schema))
	for i := range x.schema {
		list[i] = x.schema[i].Name
	}
	return list
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
