package format

import (
	"fmt"
	"strings"
)

// TrapError says that a function did not end for a row: it divided by zero, read outside the memory, ran out of fuel.
type TrapError struct {
	Row    int // Row counts in the rows that were run.
	Reason string
}

func (e *TrapError) Error() string { return fmt.Sprintf("row %d: %s", e.Row, e.Reason) }

// TrapReason returns why a call trapped, given the runtime's error and the fuel that the call left.
func TrapReason(err error, fuel int64) string {
	if fuel < 0 {
		return fmt.Sprintf("runs for more than %d instructions", Fuel)
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	if reason = strings.TrimPrefix(reason, "wasm error: "); reason == "out of bounds memory access" {
		return "reads or writes outside the module's memory"
	}
	return reason
}
