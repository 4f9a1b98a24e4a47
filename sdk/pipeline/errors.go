package pipeline

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/millrace/millrace/fpga/catalogue"
)

// The kinds of errors of a pipeline, for errors.Is.
var (
	ErrSyntax          = errors.New("syntax error")         // no YAML, or not one document, or too large
	ErrUnknownKey      = errors.New("unknown key")          // of the document
	ErrUnknownOperator = errors.New("unknown operator")     // not in the catalogue
	ErrUnknownParam    = errors.New("unknown parameter")    // not of this operator
	ErrDuplicate       = errors.New("given twice")          // a key, a parameter, a feature's name
	ErrMissing         = catalogue.ErrMissing               // something that has no default
	ErrValue           = catalogue.ErrValue                 // of the wrong type or out of range
	ErrPattern         = errors.New("wrong column pattern") // matches nothing, or cannot be read
	ErrMissingColumn   = errors.New("missing column")       // not in the dataset
	ErrUnsupported     = catalogue.ErrUnsupported           // of a type or encoding that no unit decodes
	ErrColumnType      = catalogue.ErrColumnType            // for the operator or the tensor
	// dense features and the label have no place for a null
	ErrNull  = errors.New("null can reach the output")
	ErrIDs   = errors.New("ids do not fit int32")
	ErrEmpty = errors.New("pipeline has no outputs")
	ErrCycle = errors.New("values form a cycle")
	// of values that no group uses
	ErrUnused = errors.New("value is not used")
)

// Error is one error of a pipeline.
type Error struct {
	Pos    Pos
	Path   string // where in the document, as dense[0].ops[1].clamp.min; empty for the whole
	Column string // the column or feature; empty if the error is of the spec alone
	// Others are further columns with the same error, in the order of the document.
	Others []string
	Err    error  // one of the sentinels
	Detail string // the value that is wrong, and what to do

	missing string // the column that the data set lacks; empty for other errors
}

// Error renders "line 5:11: dense[0].ops[1]: column "int_0": unknown operator: ...".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pos != (Pos{}) {
		fmt.Fprintf(&b, "line %d:%d: ", e.Pos.Line, e.Pos.Column)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	switch {
	case len(e.Others) > 0:
		fmt.Fprintf(&b, "columns %s: ", columnList(append([]string{e.Column}, e.Others...)))
	case e.Column != "":
		fmt.Fprintf(&b, "column %q: ", e.Column)
	}
	b.WriteString(e.Err.Error())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// maxErrors bounds the errors that are reported of one pipeline.
const maxErrors = 20

// Errors are the errors of a pipeline, in the document's order, at most maxErrors. Columns with the same error share
// one.
type Errors []*Error

// Error renders one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = "pipeline: " + one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// ExplainFolders adds a hint to the errors of missing columns that are keys of the partitions' folders, such as day in
// day=1/part-0.parquet. The names are those of the partitions.
func (e Errors) ExplainFolders(names func(yield func(string) bool)) {
	folders := map[string]string{} // by key: one of the folders that have it
	for name := range names {
		for folder := range strings.SplitSeq(path.Dir(name), "/") {
			if key, _, ok := strings.Cut(folder, "="); ok && folders[key] == "" {
				folders[key] = folder
			}
		}
	}
	for _, one := range e {
		if folder := folders[one.missing]; one.missing != "" && folder != "" {
			one.Detail += fmt.Sprintf("; %s is part of the names of folders (%s), which are not read: write it into "+
				"the files as a column", quoteColumn(one.missing), shorten(folder))
		}
	}
}

// maxColumns bounds the columns that one error names. A range counts as two columns.
const maxColumns = 12

// columnList writes columns as a pipeline names them: consecutive numbers behind one prefix become a range.
func columnList(names []string) string {
	var list []string
	for i := 0; i < len(names); {
		if len(list) >= maxColumns {
			list = append(list, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		n := 1
		for i+n < len(names) && isNext(names[i+n-1], names[i+n]) {
			n++
		}
		if n > 2 {
			list = append(list, fmt.Sprintf("%s..%s", quoteColumn(names[i]), quoteColumn(names[i+n-1])))
			i += n
			continue
		}
		list = append(list, quoteColumn(names[i]))
		i++
	}
	return strings.Join(list, ", ")
}

// quoteColumn quotes a name that holds other characters than letters, digits, dots, dashes and underscores.
func quoteColumn(name string) string {
	for _, r := range name {
		if r != '_' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Sprintf("%q", shorten(name))
		}
	}
	if name == "" {
		return `""`
	}
	return shorten(name)
}

// isNext reports whether b is a with the next number at its end.
func isNext(a, b string) bool {
	prefix, x := splitNumber(a)
	prefix2, y := splitNumber(b)
	n, err := strconv.ParseUint(x, 10, 31)
	return prefix == prefix2 && err == nil && y == fmt.Sprintf("%0*d", len(x), n+1)
}

// problems collects errors.
type problems struct{ list Errors }

// add adds an error, or, if the same error of another column is there, a column to that error.
func (p *problems) add(where location, err error, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if where.column != "" {
		for _, e := range p.list {
			if e.Column != "" && e.Path == where.path && e.Pos == where.pos && errors.Is(e.Err, err) && e.Detail == detail {
				e.Others = append(e.Others, where.column)
				return
			}
		}
	}
	if len(p.list) < maxErrors {
		p.list = append(p.list, &Error{Pos: where.pos, Path: where.path, Column: where.column, Err: err,
			Detail: detail})
	}
}

// addFound adds an error that has no location, with one.
func (p *problems) addFound(where location, wrong *Error) {
	n := len(p.list)
	if p.add(where, wrong.Err, "%s", wrong.Detail); len(p.list) > n {
		p.list[n].missing = wrong.missing
	}
}

// err returns the errors, or nil if none was added.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return p.list
}

// location is the part of a pipeline that a check looks at.
type location struct {
	pos    Pos
	path   string
	column string
}

// key returns the location of a member of a mapping.
func (a location) key(name string, pos Pos) location {
	if a.path != "" {
		name = a.path + "." + name
	}
	return location{pos: pos, path: name, column: a.column}
}

// index returns the location of an element of a list.
func (a location) index(i int, pos Pos) location {
	return location{pos: pos, path: fmt.Sprintf("%s[%d]", a.path, i), column: a.column}
}
