package packaging

import (
	"embed"
	"fmt"
	"io/fs"
	"math/bits"
	"strings"

	"github.com/millrace/millrace/fpga/rtl"
)

// shell holds what lies around the unit in every kernel. kernel_registers.sv is made of [Controls].
//
//go:embed *.sv
var shell embed.FS

// shellSources are the files of the shell, packages first.
var shellSources = []string{"kernel_registers.sv", "kernel_control.sv", "memory_reader.sv", "memory_writer.sv",
	"kernel_shell.sv"}

// Kernel is a unit as a kernel of a board.
type Kernel struct {
	Name       string // also of its top module
	Unit       rtl.Unit
	InputBits  int // A beat of the input has InputBits, a power of two from 64 on.
	OutputBits int // A beat of the output has OutputBits.
	Arguments  []Argument
	Tables     []Table
}

// Argument is a register that a host writes before a run.
type Argument struct {
	Name   string
	Port   string // memory port of a buffer's address, or that of the control registers
	Offset uint32 // in bytes
	Bytes  uint32 // 4 or 8
	About  string
}

// Table is a memory of the unit that a host writes before a run: Entries registers of 64 bits from Offset on.
type Table struct {
	Name    string
	Offset  uint32 // in bytes
	Entries int
	About   string
}

// The ports of a kernel.
const (
	controlPort = "s_axi_control"
	inputPort   = "m_axi_input"
	outputPort  = "m_axi_output"
)

// File is a file of a kernel.
type File struct {
	Name string // relative, with slashes
	Text string
}

// Of returns the kernel of a unit.
func Of(unit rtl.Unit) (Kernel, error) {
	k := Kernel{Name: "millrace_" + unit.Name, Unit: unit, InputBits: beatBits(unit.Input),
		OutputBits: beatBits(unit.Output)}
	for _, c := range Controls() {
		port := controlPort
		switch c.Name {
		case inputAddress:
			port = inputPort
		case outputAddress:
			port = outputPort
		case transferCount, resultRoom:
		default:
			continue // no argument: the host reads it, or begins the run with it
		}
		k.Arguments = append(k.Arguments, Argument{Name: c.Name, Port: port, Offset: c.Offset, Bytes: uint32(c.Bits / 8),
			About: c.About})
	}
	for _, r := range unit.Registers {
		name := r.Name
		if r.Unit != "" {
			name = r.Unit + "_" + r.Name
		}
		k.Arguments = append(k.Arguments, Argument{Name: "unit_" + name, Port: controlPort, Offset: windowOffset(r.Address),
			Bytes: 8, About: r.About})
	}
	for _, t := range unit.Tables {
		k.Tables = append(k.Tables, Table{Name: t.Name, Offset: windowOffset(t.Address), Entries: t.Entries, About: t.About})
	}
	names := make(map[string]bool)
	for _, a := range k.Arguments {
		if names[a.Name] {
			return Kernel{}, fmt.Errorf("packaging: unit %s has two registers %s: name one of them otherwise in "+
				"units/%s.json", unit.Name, a.Name, unit.Name)
		}
		names[a.Name] = true
	}
	return k, nil
}

// windowOffset returns where a host finds a register or table entry of the unit.
func windowOffset(address uint16) uint32 { return WindowBase + 8*uint32(address) }

// beatBits returns the bits of a beat that holds a transfer in words of 64 bits.
func beatBits(fields []rtl.Field) int {
	words := rtl.TransferWords(fields)
	return 64 << bits.Len(uint(words-1))
}

// Files returns the files of the kernel, with the clock that the link requests.
func (k Kernel) Files(clockKHz uint32) ([]File, error) {
	description, err := k.description()
	if err != nil {
		return nil, err
	}
	files := []File{{"kernel.xml", description}, {"package.tcl", k.packageScript()}, {"link.tcl", k.linkScript()}}
	for _, board := range Boards() {
		files = append(files, File{board.Name + ".cfg", k.linkConfiguration(board, clockKHz)})
	}
	for _, name := range k.Unit.Sources {
		text, err := fs.ReadFile(rtl.Sources, name)
		if err != nil {
			return nil, fmt.Errorf("packaging: unit %s: %w", k.Unit.Name, err)
		}
		files = append(files, File{"rtl/" + name, string(text)})
	}
	for _, name := range shellSources {
		text, err := fs.ReadFile(shell, name)
		if err != nil {
			return nil, fmt.Errorf("packaging: unit %s: %w", k.Unit.Name, err)
		}
		files = append(files, File{"rtl/packaging/" + name, string(text)})
	}
	return append(files, File{"rtl/" + k.Name + ".v", k.top()}), nil
}

// sources returns the names of all sources, packages before those that use them, and the top module last.
func (k Kernel) sources() []string {
	var names []string
	for _, name := range k.Unit.Sources {
		names = append(names, "rtl/"+name)
	}
	for _, name := range shellSources {
		names = append(names, "rtl/packaging/"+name)
	}
	return append(names, "rtl/"+k.Name+".v")
}

// generated begins every generated file.
func (k Kernel) generated(comment string) string {
	return comment + " The kernel of unit " + k.Unit.Name + ", made by `millrace image package`. " +
		"No tool of AMD's has read this file yet.\n"
}

// indented puts spaces before each line of a text.
func indented(text string, spaces int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", spaces) + line)
	}
	return b.String()
}
