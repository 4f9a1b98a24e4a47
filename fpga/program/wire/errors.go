package wire

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

var (
	// ErrCorrupt says that Marshal did not write these bytes: they are truncated or altered, or have impossible counts.
	ErrCorrupt = errors.New("damaged")
	// ErrVersion says that bytes were written by another major version.
	ErrVersion = errors.New("unsupported version")
	// ErrUnknown says that a program requires a section, unit or unit version that this build lacks. The error is an
	// *UnknownError.
	ErrUnknown = errors.New("unknown and required")
)

// UnknownError names a part that a program requires and this build does not know. It unwraps to [ErrUnknown].
type UnknownError struct {
	Section uint16       // number of the section; 0 when a unit is meant
	Unit    program.Unit // 0 when a section is meant
	Version uint16       // version of the unit that is wanted
}

func (e *UnknownError) Error() string {
	if e.Section != 0 {
		return fmt.Sprintf("program: section %d is %v", e.Section, ErrUnknown)
	}
	if have := e.Unit.Version(); have != 0 {
		return fmt.Sprintf("program: version %d of unit %v is %v; this build has version %d", e.Version, e.Unit, ErrUnknown,
			have)
	}
	return fmt.Sprintf("program: unit %d (version %d) is %v", uint16(e.Unit), e.Version, ErrUnknown)
}

// Unwrap returns ErrUnknown.
func (e *UnknownError) Unwrap() error { return ErrUnknown }

// corruptError reports damage in what, one of "program", "slice", "result".
func corruptError(what, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", what, ErrCorrupt, fmt.Sprintf(format, args...))
}
