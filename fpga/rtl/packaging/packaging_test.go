package packaging

import (
	"encoding/xml"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/shared"
)

const testClockKHz = 223_000

// eachKernel calls a function with the kernel of each unit, and its files by name.
func eachKernel(t *testing.T, try func(t *testing.T, k Kernel, files map[string]string)) {
	t.Helper()
	units, err := rtl.Units()
	require.NoError(t, err)
	require.NotEmpty(t, units)
	for _, unit := range units {
		t.Run(unit.Name, func(t *testing.T) {
			k, err := Of(unit)
			require.NoError(t, err)
			list, err := k.Files(testClockKHz)
			require.NoError(t, err)
			files := make(map[string]string)
			for _, f := range list {
				require.NotContains(t, files, f.Name)
				files[f.Name] = f.Text
			}
			try(t, k, files)
		})
	}
}

// TestGeneratedFiles keeps what is generated of a small unit, and of the one with the most registers.
func TestGeneratedFiles(t *testing.T) {
	for _, name := range []string{"clamp", "lane"} {
		unit, err := rtl.Named(name)
		require.NoError(t, err)
		k, err := Of(unit)
		require.NoError(t, err)
		files, err := k.Files(testClockKHz)
		require.NoError(t, err)
		kept := 0
		for _, f := range files {
			if !strings.HasSuffix(f.Name, ".sv") {
				goldenfile.Text(t, filepath.Join("testdata", name, filepath.Base(f.Name)), f.Text)
				kept++
			}
		}
		require.Equal(t, 6, kept)
	}
}

// region is a part of the bytes that a host maps of a kernel.
type region struct {
	name       string
	begin, end uint64
}

// requireApart checks that regions lie within the mapped bytes, at whole words, and that none overlaps another.
func requireApart(t *testing.T, regions []region) {
	t.Helper()
	slices.SortFunc(regions, func(a, b region) int { return int(int64(a.begin) - int64(b.begin)) })
	for i, r := range regions {
		require.Less(t, r.begin, r.end, r.name)
		require.LessOrEqual(t, r.end, uint64(WindowSize), r.name)
		require.Zero(t, r.begin%4, r.name)
		if i > 0 {
			require.LessOrEqual(t, regions[i-1].end, r.begin, "%s and %s overlap", regions[i-1].name, r.name)
		}
	}
}

// TestDescriptionsAreTheRegisters reads kernel.xml as a tool does, and holds it against the unit's description and the
// registers of a run.
func TestDescriptionsAreTheRegisters(t *testing.T) {
	eachKernel(t, func(t *testing.T, k Kernel, files map[string]string) {
		var got xmlRoot
		require.NoError(t, xml.Unmarshal([]byte(files["kernel.xml"]), &got))
		require.Equal(t, "millrace_"+k.Unit.Name, got.Kernel.Name)
		require.Equal(t, "user_managed", got.Kernel.Protocol)
		require.Equal(t, "ip", got.Kernel.Language)

		modes := map[string]string{}
		for _, p := range got.Kernel.Ports {
			require.NotContains(t, modes, p.Name)
			modes[p.Name] = p.Mode
			require.Contains(t, files["rtl/"+k.Name+".v"], " "+p.Name+"_")
			if p.Mode == "master" {
				require.Contains(t, files["rtl/"+k.Name+".v"], fmt.Sprintf("[%d:0]", p.Width-1))
			} else {
				require.Equal(t, fmt.Sprintf("%#x", WindowSize), p.Range)
			}
		}
		require.Equal(t, map[string]string{controlPort: "slave", inputPort: "master", outputPort: "master"}, modes)

		number := func(text string) uint64 {
			var n uint64
			_, err := fmt.Sscanf(text, "0x%x", &n)
			require.NoError(t, err, text)
			return n
		}
		offsets := make(map[string]uint64)
		regions := []region{}
		for i, a := range got.Kernel.Args {
			require.Equal(t, i, a.ID, "ids are 0, 1, 2 and so on")
			require.NotContains(t, offsets, a.Name)
			require.Contains(t, modes, a.Port)
			require.Equal(t, a.Port != controlPort, a.Qualifier == 1, a.Name)
			require.Equal(t, a.Size, a.HostSize)
			offsets[a.Name] = number(a.Offset)
			regions = append(regions, region{a.Name, number(a.Offset), number(a.Offset) + number(a.Size)})
		}
		for _, c := range Controls() {
			if offset, ok := offsets[c.Name]; ok {
				require.EqualValues(t, c.Offset, offset, c.Name)
				continue
			}
			regions = append(regions, region{c.Name, uint64(c.Offset), uint64(c.Offset) + uint64(c.Bits/8)})
		}
		for _, table := range k.Tables {
			begin := uint64(table.Offset)
			regions = append(regions, region{"table " + table.Name, begin, begin + 8*uint64(table.Entries)})
			require.Contains(t, files["kernel.xml"], fmt.Sprintf("Table %s: %d registers of 8 bytes from %#x on.", table.Name,
				table.Entries, table.Offset))
		}
		requireApart(t, regions)

		for _, r := range k.Unit.Registers {
			name := strings.TrimPrefix(r.Unit+"_"+r.Name, "_")
			require.EqualValues(t, WindowBase+8*uint32(r.Address), offsets["unit_"+name], name)
			if r.Unit == "" {
				constant := regexp.MustCompile(`\b` + camelCase(r.Name) + ` = 16'd(\d+);`).FindStringSubmatch(
					files["rtl/generated/"+k.Unit.Name+"_registers.sv"])
				require.Len(t, constant, 2, name)
				require.Equal(t, fmt.Sprint(r.Address), constant[1], "the register that the unit decodes")
			}
		}
		require.Len(t, k.Tables, len(k.Unit.Tables))
		for i, table := range k.Unit.Tables {
			require.EqualValues(t, WindowBase+8*uint32(table.Address), k.Tables[i].Offset)
			require.Equal(t, table.Entries, k.Tables[i].Entries)
		}
		require.Len(t, got.Kernel.Args, len(k.Unit.Registers)+4)
	})
}

// TestBeats checks that a beat holds a transfer, and is a power of two that an AXI4 port can have.
func TestBeats(t *testing.T) {
	for bits, want := range map[int]int{1: 64, 64: 64, 65: 128, 128: 128, 129: 256, 263: 512, 512: 512, 513: 1024} {
		require.Equal(t, want, beatBits([]rtl.Field{{Name: "v", Bits: bits}}), bits)
	}
	eachKernel(t, func(t *testing.T, k Kernel, _ map[string]string) {
		for bits, fields := range map[int][]rtl.Field{k.InputBits: k.Unit.Input, k.OutputBits: k.Unit.Output} {
			require.GreaterOrEqual(t, bits, rtl.TransferBits(fields))
			require.LessOrEqual(t, bits, 1024)
		}
	})
}

// TestScriptsNameFilesThatThereAre checks that every file that a script names is one of the kernel's or one that a
// script writes, that all sources are named, and that they are those of fpga/rtl.
func TestScriptsNameFilesThatThereAre(t *testing.T) {
	eachKernel(t, func(t *testing.T, k Kernel, files map[string]string) {
		named := make(map[string]bool)
		for _, m := range regexp.MustCompile(`\$folder/([\w./$]+)`).FindAllStringSubmatch(
			files["package.tcl"]+files["link.tcl"], -1) {
			named[m[1]] = true
		}
		for name := range files {
			if strings.HasPrefix(name, "rtl/") || name == "kernel.xml" {
				require.True(t, named[name], "package.tcl does not name %s", name)
			}
		}
		for _, written := range []string{"package", "package/ip", k.Name + ".xo", "link.$board",
			k.Name + ".$board.xclbin", "$board.cfg"} {
			require.True(t, named[written], written)
			delete(named, written)
		}
		for name := range named {
			require.Contains(t, files, name)
		}
		for _, source := range k.Unit.Sources {
			text, err := fs.ReadFile(rtl.Sources, source)
			require.NoError(t, err)
			require.Equal(t, string(text), files["rtl/"+source])
		}
		for _, board := range Boards() {
			text := files[board.Name+".cfg"]
			require.Contains(t, text, "platform="+board.Platform+"\n")
			require.Contains(t, text, "kernel_frequency=223\n")
			require.Contains(t, text, "nk="+k.Name+":1:"+k.Name+"_1\n")
			for _, m := range regexp.MustCompile(`(?m)^sp=(\w+)\.(\w+):(.+)$`).FindAllStringSubmatch(text, -1) {
				require.Equal(t, k.Name+"_1", m[1])
				require.Contains(t, []string{inputPort, outputPort}, m[2])
				require.Equal(t, board.Memory, m[3])
			}
			require.Equal(t, map[bool]int{true: 2, false: 0}[board.Memory != ""], strings.Count(text, "\nsp="))
		}
	})
}

// recordingShell lets tclsh run a script of Vivado's: every command that Tcl does not have is printed, with its words.
const recordingShell = `
proc unknown {args} { puts "called $args"; return "object" }
proc exec {args} { puts "called exec $args" }
source %s
`

// TestScriptsAreTcl has a Tcl shell run the scripts, with AMD's commands recorded instead of done.
func TestScriptsAreTcl(t *testing.T) {
	tclsh, err := exec.LookPath("tclsh")
	if err != nil {
		shared.Missing(t, "install tcl: %v", err)
	}
	eachKernel(t, func(t *testing.T, k Kernel, files map[string]string) {
		folder := t.TempDir()
		writeFiles(t, folder, files)
		run := func(script string, arguments ...string) (string, error) {
			shell := filepath.Join(folder, "shell.tcl")
			text := fmt.Sprintf(recordingShell, filepath.Join(folder, script))
			require.NoError(t, os.WriteFile(shell, []byte(text), 0o600))
			output, err := exec.CommandContext(t.Context(), tclsh, append([]string{shell}, arguments...)...).CombinedOutput()
			return string(output), err
		}
		output, err := run("package.tcl")
		require.NoError(t, err, output)
		added := regexp.MustCompile(`called add_files -norecurse \{(.*)\}`).FindStringSubmatch(output)
		require.Len(t, added, 2, output)
		sources := strings.Fields(added[1])
		require.Len(t, sources, len(k.sources()))
		for _, source := range sources {
			require.FileExists(t, source)
		}
		require.Contains(t, output, "called package_xo -force -xo_path "+filepath.Join(folder, k.Name+".xo"))
		for _, board := range Boards() {
			output, err := run("link.tcl", board.Name)
			require.NoError(t, err, output)
			require.Contains(t, output, "--config "+filepath.Join(folder, board.Name+".cfg"))
		}
		for _, wrong := range [][]string{nil, {"kv260"}, {"u280", "smartssd"}} {
			output, err := run("link.tcl", wrong...)
			require.Error(t, err)
			require.Contains(t, output, "want one board of: smartssd u280")
		}
	})
}

// TestYosysElaboratesKernels has Yosys read the kernels of two units, one of which takes sections: it must know every
// module and find no net that has two drivers or none.
func TestYosysElaboratesKernels(t *testing.T) {
	yosys, err := exec.LookPath("yosys")
	if err != nil {
		shared.MissingSimulator(t, fmt.Errorf("install yosys: %w", err))
	}
	eachKernel(t, func(t *testing.T, k Kernel, files map[string]string) {
		if k.Unit.Name != "clamp" && k.Unit.Name != "plain_decoder" {
			return
		}
		folder := t.TempDir()
		writeFiles(t, folder, files)
		command := exec.CommandContext(t.Context(), yosys, "-q", "-p", fmt.Sprintf("read_verilog -sv %s; "+
			"hierarchy -check -top %s; proc; flatten; opt_clean; check -assert", strings.Join(k.sources(), " "), k.Name))
		command.Dir = folder
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	})
}

// writeFiles writes the files of a kernel into a folder.
func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// TestRegistersOfOneName refuses a unit whose description gives two registers one name.
func TestRegistersOfOneName(t *testing.T) {
	unit, err := rtl.Named("clamp")
	require.NoError(t, err)
	unit.Registers = append(unit.Registers, rtl.Register{Name: "least", Address: 9, Bits: 1})
	_, err = Of(unit)
	require.ErrorContains(t, err, "unit clamp has two registers unit_least")
	unit.Registers[3].Unit = "inner"
	_, err = Of(unit)
	require.NoError(t, err)
	unit.Sources = append(unit.Sources, "none.sv")
	k, err := Of(unit)
	require.NoError(t, err)
	_, err = k.Files(testClockKHz)
	require.ErrorContains(t, err, "none.sv")
}

// TestDocument keeps the registers of a run in docs/rtl.md as Controls has them.
func TestDocument(t *testing.T) {
	const document, begin, end = "../../../docs/rtl.md", "<!-- controls -->\n", "<!-- end of controls -->"
	var table strings.Builder
	table.WriteString("| offset | register | bits | |\n|---|---|---|---|\n")
	for _, c := range Controls() {
		fmt.Fprintf(&table, "| %02xh | `%s` | %d | %s |\n", c.Offset, c.Name, c.Bits, c.About)
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	goldenfile.Text(t, document, before+begin+table.String()+end+after)
}

// TestRequestedClock checks that no link requests a clock that the unit's longest path is too long for.
func TestRequestedClock(t *testing.T) {
	synthesis, err := rtl.ReadSynthesis()
	require.NoError(t, err)
	eachKernel(t, func(t *testing.T, k Kernel, _ map[string]string) {
		clock, err := RequestedClock(k.Unit)
		require.NoError(t, err)
		resources, err := synthesis.Named(k.Unit.Name)
		require.NoError(t, err)
		require.Positive(t, clock)
		require.LessOrEqual(t, clock, resources.Path.LimitKHz())
		require.LessOrEqual(t, clock, uint32(rtl.ScreenedClockKHz))
	})
	_, err = RequestedClock(rtl.Unit{Name: "none"})
	require.ErrorContains(t, err, `no unit "none"`)
}
