package packaging

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/rtl"
)

// Package is a unit's kernel in a folder, and the registers that a host writes.
type Package struct {
	Unit       string     `json:"unit"`
	Kernel     string     `json:"kernel"`
	Folder     string     `json:"folder"`
	ClockKHz   uint32     `json:"requested_clock_khz"`
	InputBeat  int        `json:"input_beat_bytes"`
	OutputBeat int        `json:"output_beat_bytes"`
	Registers  []Register `json:"registers"`
	Files      []string   `json:"files"`
}

// Register is a register or a table as a host sees it.
type Register struct {
	Name   string `json:"name" table:"register"`
	Offset uint32 `json:"offset_bytes" table:"offset|%#x"`
	Bytes  uint32 `json:"size_bytes" table:"bytes"`
	About  string `json:"about" table:""`
}

// Write writes the files of a unit's kernel into a folder that does not exist yet, or is empty: they are never mixed
// with other files.
func Write(unit rtl.Unit, folder string) (Package, error) {
	kernel, err := Of(unit)
	if err != nil {
		return Package{}, err
	}
	clock, err := RequestedClock(unit)
	if err != nil {
		return Package{}, err
	}
	files, err := kernel.Files(clock)
	if err != nil {
		return Package{}, err
	}
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return Package{}, fmt.Errorf("%s: the folder is not empty: name another, or empty it", folder)
	}
	p := Package{Unit: unit.Name, Kernel: kernel.Name, Folder: folder, ClockKHz: clock, InputBeat: kernel.InputBits / 8,
		OutputBeat: kernel.OutputBits / 8, Registers: kernel.registers()}
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return Package{}, err
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return Package{}, err
		}
		p.Files = append(p.Files, f.Name)
	}
	return p, nil
}

// registers returns the registers and the tables of a kernel.
func (k Kernel) registers() []Register {
	var registers []Register
	for _, control := range Controls() {
		registers = append(registers, Register{control.Name, control.Offset, uint32(control.Bits / 8), control.About})
	}
	for _, a := range k.Arguments {
		if a.Offset >= WindowBase {
			registers = append(registers, Register{a.Name, a.Offset, a.Bytes, a.About})
		}
	}
	for _, table := range k.Tables {
		registers = append(registers, Register{"table " + table.Name, table.Offset, 8 * uint32(table.Entries), table.About})
	}
	return registers
}
