package packaging

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestRegisterPackage keeps the SystemVerilog package of the registers of a run as Controls makes it.
func TestRegisterPackage(t *testing.T) {
	goldenfile.Text(t, "kernel_registers.sv", registerPackage())
}

// registerPackage returns the SystemVerilog package with the offsets of the registers of a run.
func registerPackage() string {
	var b strings.Builder
	b.WriteString("// The registers of a run. Made of Controls in controls.go; do not edit.\npackage kernel_registers;\n")
	for _, c := range Controls() {
		fmt.Fprintf(&b, "  // %s\n", c.About)
		fmt.Fprintf(&b, "  localparam logic [19:0] %s = 20'h%05x;\n", camelCase(c.Name), c.Offset)
	}
	b.WriteString("  // The register or table entry of the unit with address a lies 8 a behind.\n")
	fmt.Fprintf(&b, "  localparam logic [19:0] WindowBase = 20'h%05x;\nendpackage\n", WindowBase)
	return b.String()
}

// camelCase turns snake_case into the form that the lowRISC style guide wants of constants.
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
