package processor

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic says that the program panicked: a fault of the software, never of the data. The error is a *PanicError.
var ErrPanic = errors.New("the program panicked")

// PanicError is a panic that ended a stream or a command and nothing else. It wraps ErrPanic.
type PanicError struct {
	Where string // what was being done
	Value any    // what the program panicked with
	Stack []byte // The stack of the goroutine, for the log.
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: %v: %v", e.Where, ErrPanic, e.Value)
}

// Unwrap returns ErrPanic.
func (e *PanicError) Unwrap() error { return ErrPanic }

// Contain is deferred by functions whose panic must not end the process: it sets err to a *PanicError when the
// function panics.
//
//	defer processor.Contain("measure P", &err)
func Contain(where string, err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Where: where, Value: p, Stack: debug.Stack()}
	}
}
