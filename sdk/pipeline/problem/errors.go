package problem

import (
	"cmp"
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
	// ErrStatistics says that statistics are not there, or lack what an operator takes from them.
	ErrStatistics = catalogue.ErrStatistics
	// ErrVocabulary says that a vocabulary is not there, or is not of this pipeline.
	ErrVocabulary = errors.New("vocabulary does not fit")
	// ErrSelection says that the selection of a pipeline with a filter is not there, or is not of this pipeline and data
	// set.
	ErrSelection = errors.New("selection does not fit")
	// ErrModule says that a WebAssembly module is not there, or has no such function.
	ErrModule = errors.New("module does not fit")
	// ErrDroppedRows says that rows would be dropped while mini-batches are made, and the folds of a target encoding
	// follow from the numbers of rows.
	ErrDroppedRows = errors.New("target_encoding: malformed rows are dropped while mini-batches are made, and folds " +
		"follow from the numbers of the rows before; treat malformed rows as null or as errors")
)

// Error is one error of a pipeline.
type Error struct {
	Pos    catalogue.Pos
	Path   string // where in the document, as dense[0].ops[1].clamp.min; empty for the whole
	Column string // the column or feature; empty if the error is of the spec alone
	// Others are further columns with the same error, in the order of the document.
	Others []string
	Err    error  // one of the sentinels
	Detail string // the value that is wrong, and what to do

	Missing string // the column that the data set lacks; empty for other errors
}

// Error renders "line 5:11: dense[0].ops[1]: column "int_0": unknown operator: ...".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pos != (catalogue.Pos{}) {
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

// MaxErrors bounds the errors that are reported of one pipeline.
const MaxErrors = 20

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
		if folder := folders[one.Missing]; one.Missing != "" && folder != "" {
			one.Detail += fmt.Sprintf("; %s is part of the names of folders (%s), which are not read: write it into "+
				"the files as a column", quoteColumn(one.Missing), Shorten(folder))
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
			return fmt.Sprintf("%q", Shorten(name))
		}
	}
	if name == "" {
		return `""`
	}
	return Shorten(name)
}

// isNext reports whether b is a with the next number at its end.
func isNext(a, b string) bool {
	prefix := strings.TrimRight(a, "0123456789")
	digits := a[len(prefix):]
	n, err := strconv.ParseUint(digits, 10, 31)
	return err == nil && b == fmt.Sprintf("%s%0*d", prefix, len(digits), n+1)
}

// List collects errors.
type List struct{ Errors Errors }

// Add adds an error, or, if the same error of another column is there, a column to that error.
func (p *List) Add(where Place, err error, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if where.Column != "" {
		for _, e := range p.Errors {
			if e.Column != "" && e.Path == where.Path && e.Pos == where.Pos && errors.Is(e.Err, err) && e.Detail == detail {
				e.Others = append(e.Others, where.Column)
				return
			}
		}
	}
	if len(p.Errors) < MaxErrors {
		p.Errors = append(p.Errors, &Error{Pos: where.Pos, Path: where.Path, Column: where.Column, Err: err,
			Detail: detail})
	}
}

// AddFound adds an error that has no location, with one.
func (p *List) AddFound(where Place, wrong *Error) {
	n := len(p.Errors)
	if p.Add(where, wrong.Err, "%s", wrong.Detail); len(p.Errors) > n {
		p.Errors[n].Missing = wrong.Missing
	}
}

// Err returns the errors, or nil if none was added.
func (p *List) Err() error {
	if len(p.Errors) == 0 {
		return nil
	}
	return p.Errors
}

// Place is the part of a pipeline that a check looks at.
type Place struct {
	Pos    catalogue.Pos
	Path   string
	Column string
}

// Key returns the place of a member of a mapping. A member without a position has that of the mapping.
func (a Place) Key(name string, pos catalogue.Pos) Place {
	if a.Path != "" {
		name = a.Path + "." + name
	}
	return Place{Pos: cmp.Or(pos, a.Pos), Path: name, Column: a.Column}
}

// Index returns the place of an element of a list. An element without a position has that of the list.
func (a Place) Index(i int, pos catalogue.Pos) Place {
	return Place{Pos: cmp.Or(pos, a.Pos), Path: fmt.Sprintf("%s[%d]", a.Path, i), Column: a.Column}
}

// Quote shortens foreign text and puts it in quotes.
func Quote(s string) string { return `"` + Shorten(s) + `"` }

// Shorten shortens foreign text for an error.
func Shorten(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
