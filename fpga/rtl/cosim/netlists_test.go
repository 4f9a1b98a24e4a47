package cosim

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
)

// netlistCommands elaborate a unit to the netlist that synthesis begins with: sources, top module, file of the netlist.
const netlistCommands = "read_verilog -sv %s; prep -flatten -top %s; write_verilog -noattr %s"

// TestNetlistsAreKernels has Yosys elaborate every unit, and runs the netlists through the cases of the units. A
// source that Yosys reads in another way than Verilator fails the test. Each netlist takes a build of the simulator, so
// only `make rtl` runs the test.
func TestNetlistsAreKernels(t *testing.T) {
	if os.Getenv("MILLRACE_RTL_WHOLE") != "1" {
		t.Skip("`make rtl` runs this test (MILLRACE_RTL_WHOLE=1)")
	}
	yosys, err := exec.LookPath("yosys")
	require.NoError(t, err)
	version, err := exec.CommandContext(t.Context(), yosys, "-V").Output()
	require.NoError(t, err)
	for name, cases := range byUnit(unitCases(t, 8192, 1)) {
		t.Run(name, func(t *testing.T) {
			unit, err := rtl.Named(name)
			require.NoError(t, err)
			simulator := startChanged(t, unit, "netlist", string(version)+netlistCommands, func(work string) []string {
				const netlist = "netlist.v"
				command := exec.CommandContext(t.Context(), yosys, "-q", "-p", fmt.Sprintf(netlistCommands,
					strings.Join(unit.Sources, " "), unit.Name, netlist))
				command.Dir = work
				output, err := command.CombinedOutput()
				require.NoError(t, err, string(output))
				return []string{netlist}
			})
			for _, c := range cases {
				require.False(t, differs(t, simulator, unit, c, c.kernel(t, c.stream)), c.name)
			}
		})
	}
}
