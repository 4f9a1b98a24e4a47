package pipeline

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a pipeline, for errors.Is.
var (
	ErrSyntax          = errors.New("syntax error")              // no YAML, or not one document, or too large
	ErrUnknownKey      = errors.New("unknown key")               // of the document
	ErrUnknownOperator = errors.New("unknown operator")          // not in the catalogue
	ErrUnknownParam    = errors.New("unknown parameter")         // not of this operator
	ErrDuplicate       = errors.New("given twice")               // a key, a parameter, a feature's name
	ErrMissing         = errors.New("missing")                   // something that has no default
	ErrValue           = errors.New("wrong value")               // of the wrong type or out of range
	ErrPattern         = errors.New("wrong column pattern")      // matches nothing, or cannot be read
	ErrMissingColumn   = errors.New("missing column")            // not in the dataset
	ErrUnsupported     = errors.New("column cannot be read")     // of a type or encoding that no unit decodes
	ErrColumnType      = errors.New("wrong type of column")      // for the operator or the tensor
	ErrNull            = errors.New("null can reach the output") // dense and label have no place for one
	ErrIDs             = errors.New("ids do not fit int32")
	ErrEmpty           = errors.New("pipeline has no outputs")
)

// Pos is a place in a document, counted from 1. The zero Pos says that there is none: the spec was built in Go.
type Pos struct{ Line, Column int }

// Error is one thing wrong with a pipeline.
type Error struct {
	Pos    Pos
	Path   string // where in the document, as dense[0].ops[1].clamp.min; empty for the whole
	Column string // the column or feature meant; empty when the spec alone is wrong
	Err    error  // one of the sentinels
	Detail string // what exactly, and what to do
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
	if e.Column != "" {
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

// maxErrors bounds how much is told about one pipeline.
const maxErrors = 20

// Errors is everything found wrong with a pipeline, in the document's order, at most 20.
type Errors []*Error

// Error renders one line an error.
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

// problems collects errors.
type problems struct{ list Errors }

func (p *problems) add(at at, err error, format string, args ...any) {
	if len(p.list) < maxErrors {
		p.list = append(p.list, &Error{Pos: at.pos, Path: at.path, Column: at.column, Err: err, Detail: fmt.Sprintf(format, args...)})
	}
}

// err returns nil when nothing was added.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return p.list
}

// at is where a check looks.
type at struct {
	pos    Pos
	path   string
	column string
}

// key returns the place of a member of a mapping.
func (a at) key(name string, pos Pos) at {
	if a.path != "" {
		name = a.path + "." + name
	}
	return at{pos: pos, path: name, column: a.column}
}

// index returns the place of a member of a list.
func (a at) index(i int, pos Pos) at {
	return at{pos: pos, path: fmt.Sprintf("%s[%d]", a.path, i), column: a.column}
}
