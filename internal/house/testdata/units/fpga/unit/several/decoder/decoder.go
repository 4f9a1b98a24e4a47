package decoder

import "github.com/millrace/millrace/fpga/unit/several/reference"

// Value uses the reference.
func Value(b []byte) int { return reference.Value(b) }
