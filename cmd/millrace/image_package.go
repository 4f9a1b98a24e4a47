package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/packaging"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
)

func (c imageCommands) pack() *cobra.Command {
	var unit, out string
	cmd := &cobra.Command{
		Use: "package", Short: "A unit's kernel for AMD's Vitis: sources, kernel.xml, scripts",
		Long: `Writes all that Vivado and Vitis take to make a kernel of a unit of fpga/rtl for a SmartSSD or a U280:
the unit's sources, what lies around it (registers by AXI4-Lite, transfers and results in memory by AXI4),
kernel.xml, a script that packages the kernel, and one that links it. Prints the registers that a host
writes, with their offsets.

No tool of AMD's has read these files, and no board has run them. The tests simulate the kernels. The clock
is requested. docs/rtl.md says what a person with a board does with the files.`,
		Example: "  millrace image package --unit sigrid_hash --out kernel\n" +
			"  millrace image package --unit lane --out kernel --output json",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return cli.Usagef("--out is wanted: the folder to write, which is not there yet or is empty")
			}
			units, err := rtl.Units()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(units, func(u rtl.Unit) bool { return u.Name == unit })
			if i < 0 {
				var names []string
				for _, u := range units {
					names = append(names, u.Name)
				}
				return cli.Usagef("--unit %q: want one of %s", unit, strings.Join(names, ", "))
			}
			p, err := packaging.Write(units[i], out)
			if err != nil {
				return err
			}
			return c.Print(p, func(w io.Writer) { printPackagedUnit(w, p) })
		},
	}
	cmd.Flags().StringVar(&unit, "unit", "", "unit of fpga/rtl, as docs/rtl.md lists them")
	cmd.Flags().StringVar(&out, "out", "", "folder to write")
	return cmd
}

// printPackagedUnit prints the registers of a kernel and where its files are.
func printPackagedUnit(w io.Writer, p packaging.Package) {
	terminal.Rows(w, p.Registers)
	fmt.Fprintf(w, "kernel %s: %s in %s; beats of %d and %d bytes; %d MHz requested, by no board run\n", p.Kernel,
		quantity.Of(len(p.Files), "file"), terminal.Cell(p.Folder), p.InputBeat, p.OutputBeat, p.ClockKHz/1000)
}
