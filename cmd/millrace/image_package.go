package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/packaging"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
)

// packagedUnit is what `millrace image package` prints.
type packagedUnit struct {
	Unit       string             `json:"unit"`
	Kernel     string             `json:"kernel"`
	Folder     string             `json:"folder"`
	ClockKHz   uint32             `json:"requested_clock_khz"`
	InputBeat  int                `json:"input_beat_bytes"`
	OutputBeat int                `json:"output_beat_bytes"`
	Registers  []packagedRegister `json:"registers"`
	Files      []string           `json:"files"`
}

// packagedRegister is a register or a table as a host sees it.
type packagedRegister struct {
	Name   string `json:"name" table:"register"`
	Offset uint32 `json:"offset_bytes" table:"offset|%#x"`
	Bytes  uint32 `json:"size_bytes" table:"bytes"`
	About  string `json:"about" table:""`
}

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
			names, err := unitNames()
			if err != nil {
				return err
			}
			described, err := rtl.Named(unit)
			if err != nil {
				return cli.Usagef("--unit %q: want one of %s", unit, strings.Join(names, ", "))
			}
			p, err := packageUnit(described, out)
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

// unitNames returns the names of the units of fpga/rtl.
func unitNames() ([]string, error) {
	units, err := rtl.Units()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range units {
		names = append(names, u.Name)
	}
	return names, nil
}

// packageUnit writes the files of a unit's kernel into a folder that is not there yet, or is empty.
func packageUnit(unit rtl.Unit, out string) (packagedUnit, error) {
	kernel, err := packaging.Of(unit)
	if err != nil {
		return packagedUnit{}, err
	}
	clock, err := packaging.RequestedClock(unit)
	if err != nil {
		return packagedUnit{}, err
	}
	files, err := kernel.Files(clock)
	if err != nil {
		return packagedUnit{}, err
	}
	if err := writeNewFolder(out, files); err != nil {
		return packagedUnit{}, err
	}
	p := packagedUnit{Unit: unit.Name, Kernel: kernel.Name, Folder: out, ClockKHz: clock,
		InputBeat: kernel.InputBits / 8, OutputBeat: kernel.OutputBits / 8}
	for _, control := range packaging.Controls() {
		p.Registers = append(p.Registers, packagedRegister{control.Name, control.Offset, uint32(control.Bits / 8),
			control.About})
	}
	for _, a := range kernel.Arguments {
		if a.Offset >= packaging.WindowBase {
			p.Registers = append(p.Registers, packagedRegister{a.Name, a.Offset, a.Bytes, a.About})
		}
	}
	for _, table := range kernel.Tables {
		p.Registers = append(p.Registers, packagedRegister{"table " + table.Name, table.Offset,
			8 * uint32(table.Entries), table.About})
	}
	for _, f := range files {
		p.Files = append(p.Files, f.Name)
	}
	return p, nil
}

// writeNewFolder writes files into a folder. What the folder holds already is never mixed with them.
func writeNewFolder(folder string, files []packaging.File) error {
	if there, err := os.ReadDir(folder); err == nil && len(there) > 0 {
		return fmt.Errorf("%s: the folder is not empty: name another, or empty it", folder)
	}
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// printPackagedUnit prints the registers of a kernel and where its files are.
func printPackagedUnit(w io.Writer, p packagedUnit) {
	terminal.Rows(w, p.Registers)
	fmt.Fprintf(w, "kernel %s: %s in %s; beats of %d and %d bytes; %d MHz requested, by no board run\n", p.Kernel,
		quantity.Of(len(p.Files), "file"), terminal.Cell(p.Folder), p.InputBeat, p.OutputBeat, p.ClockKHz/1000)
}
