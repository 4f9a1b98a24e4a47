package cosim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/packaging"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// kernelFrame is the host and the memories around a simulated kernel.
const kernelFrame = "testdata/kernel.cpp"

// startKernel returns the simulator of a unit's kernel, whose files are changed by an edit, with more arguments of
// Verilator's. Without Verilator it skips the test, or fails it if the tools are required.
func startKernel(t *testing.T, unit rtl.Unit, edit func(name, text string) string, more ...string) *Simulator {
	t.Helper()
	version := tools(t).version
	kernel, err := packaging.Of(unit)
	require.NoError(t, err)
	files, err := kernel.Files(223_000)
	require.NoError(t, err)
	frame, err := os.ReadFile(kernelFrame)
	require.NoError(t, err)
	digest, err := unit.Digest()
	require.NoError(t, err)
	arguments := []string{"--cc", "--exe", "--build", "-Wall", "-O3", "--x-initial", "unique",
		"-CFLAGS", fmt.Sprintf(`-DUNIT=V%s -DUNIT_HEADER='"V%s.h"' -DSOURCE_DIGEST='"%s"' -DINPUT_WORDS=%d `+
			`-DINPUT_BEAT=%d -DOUTPUT_WORDS=%d -DOUTPUT_BEAT=%d`, kernel.Name, kernel.Name, digest,
			rtl.TransferWords(unit.Input), kernel.InputBits/64, rtl.TransferWords(unit.Output), kernel.OutputBits/64),
		"-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0", "--top-module", kernel.Name, "--Mdir", "made",
		"-o", "simulator", "kernel.cpp"}
	arguments = append(arguments, more...)
	key, work := sha256.New(), t.TempDir()
	included, err := rtl.Sources.ReadFile(pipes)
	require.NoError(t, err)
	fmt.Fprintf(key, "%s%s%s%s", version, arguments, frame, included)
	write := func(name, text string) {
		path := filepath.Join(work, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("kernel.cpp", string(frame))
	write("pipes.h", string(included))
	for _, f := range files {
		text := edit(f.Name, f.Text)
		fmt.Fprintf(key, "%s %d\n%s", f.Name, len(text), text)
		write(f.Name, text)
		if strings.HasPrefix(f.Name, "rtl/") {
			arguments = append(arguments, f.Name)
		}
	}
	program := filepath.Join(simulatorFolder(t), fmt.Sprintf("%s-kernel-%x", unit.Name, key.Sum(nil)[:8]))
	if _, err := os.Stat(program); err != nil {
		command := exec.CommandContext(t.Context(), "verilator", arguments...)
		command.Dir = work
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", lastLines(string(output), 20))
		require.NoError(t, install(filepath.Join(work, "made", "simulator"), program))
	}
	simulator, err := Start(context.Background(), unit, program)
	require.NoError(t, err)
	return simulator
}

func asItIs(_, text string) string { return text }

// kernelsOfEveryRun are units whose kernels every run of the tests simulates: one that makes a result of each transfer,
// one that takes sections, and one that makes results of 1024 bits. `make rtl` simulates the kernels of all units.
var kernelsOfEveryRun = []string{"clamp", "plain_decoder", "row_packer"}

// TestKernelsOfUnits runs the cases of units through their kernels, by registers and memories as a board has them. The
// results must be those of the kernels in Go, with memories that wait and without, and a run may take only the cycles
// of the unit and those of its way to memory.
func TestKernelsOfUnits(t *testing.T) {
	const wayToMemory = 96 // cycles: of the first burst's read, and of the last burst's write
	cases := byUnit(unitCases(t, 2048, 3))
	units, err := rtl.Units()
	require.NoError(t, err)
	for _, unit := range units {
		if os.Getenv("MILLRACE_RTL_WHOLE") != "1" && !slices.Contains(kernelsOfEveryRun, unit.Name) {
			continue
		}
		t.Run(unit.Name, func(t *testing.T) {
			simulator := startKernel(t, unit, asItIs)
			defer func() { require.NoError(t, simulator.Close()) }()
			for turn, c := range cases[unit.Name] {
				require.NoError(t, simulator.Configure(c.setup))
				want := c.kernel(t, c.stream)
				results, cycles, err := simulator.Run(c.stream)
				require.NoError(t, err, c.name)
				requireResults(t, c, unit, want, c.said(t, results), "kernel of the unit")
				most := cyclesOf(c, unit) + wayToMemory
				if c.read != nil { // a run also reads what sections hold behind their last values
					most += len(c.stream.Words) / rtl.TransferWords(unit.Input)
				}
				require.LessOrEqual(t, cycles, uint64(most), "%s: cycles", c.name)

				stalled := c.stream
				stalled.InputSeed, stalled.OutputSeed = uint32(7*turn+2), uint32(5*turn+1)
				results, _, err = simulator.Run(stalled)
				require.NoError(t, err, c.name)
				requireResults(t, c, unit, want, c.said(t, results), "kernel with memories that wait")
			}
		})
	}
}

// kernelState is what a host reads of a run.
type kernelState struct{ Results, Status uint32 }

// command writes a frame of the simulated host to a kernel.
func command(t *testing.T, s *Simulator, operation byte, values ...any) {
	t.Helper()
	frame := bytes.NewBuffer([]byte{operation})
	for _, v := range values {
		require.NoError(t, binary.Write(frame, binary.LittleEndian, v))
	}
	_, err := s.input.Write(frame.Bytes())
	require.NoError(t, err)
}

// stateOf reads the results and the status of a kernel's last run.
func stateOf(t *testing.T, s *Simulator) kernelState {
	t.Helper()
	command(t, s, 'S')
	text := make([]byte, 8)
	_, err := io.ReadFull(s.output, text)
	require.NoError(t, err)
	return kernelState{binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[4:])}
}

// TestRoomAndFaultsOfAKernel checks that a kernel writes no result behind its room, says so, and reports failed reads
// and writes of the memory; and that the next run knows nothing of them.
func TestRoomAndFaultsOfAKernel(t *testing.T) {
	unit, err := rtl.Named("clamp")
	require.NoError(t, err)
	simulator := startKernel(t, unit, asItIs)
	defer func() { require.NoError(t, simulator.Close()) }()
	require.NoError(t, simulator.Configure(rtl.ClampInt64(0, 90)))
	values := make([]uint64, 100)
	want := make([]uint64, len(values))
	for i := range values {
		values[i], want[i] = uint64(i), min(uint64(i), 90)
	}
	run := func(n int, seed uint32) []uint64 {
		t.Helper()
		results, _, err := simulator.Run(Stream{Words: values[:n], InputSeed: seed, OutputSeed: seed})
		require.NoError(t, err)
		return results
	}
	for _, seed := range []uint32{0, 9} {
		for _, room := range []int{0, 1, 15, 16, 17, 99, 100, 101} {
			command(t, simulator, 'L', uint32(room))
			results := run(len(values), seed)
			require.Len(t, results, min(room, 100))
			require.Equal(t, want[:min(room, 100)], append([]uint64{}, results...))
			status := uint32(0)
			if room < 100 {
				status = 1
			}
			require.Equal(t, kernelState{100, status}, stateOf(t, simulator), "room for %d", room)
		}
		for _, n := range []int{0, 1, 16, 17, 32, 33} {
			require.Equal(t, want[:n], append([]uint64{}, run(n, seed)...), "%d values", n)
			require.Equal(t, kernelState{uint32(n), 0}, stateOf(t, simulator))
		}
		for faults, status := range map[uint8]uint32{1: 2, 2: 4, 3: 6, 0: 0} {
			command(t, simulator, 'E', faults)
			run(len(values), seed)
			require.Equal(t, kernelState{100, status}, stateOf(t, simulator), "faults %d", faults)
		}
		command(t, simulator, 'E', uint8(0))
	}
}

// TestSectionWithoutItsEnd has a host end a run within a section. The run ends, says that results were dropped, and
// breaks no rule of AXI4, though the unit goes on; so does the run behind a reset, whose section is whole.
func TestSectionWithoutItsEnd(t *testing.T) {
	unit, err := rtl.Named("plain_decoder")
	require.NoError(t, err)
	simulator := startKernel(t, unit, asItIs)
	defer func() { require.NoError(t, simulator.Close()) }()
	section := make([]byte, 8*1000)
	for i := range section {
		section[i] = byte(i)
	}
	setup, err := rtl.PlainDecoder(format.ColumnType{Physical: format.Int64}, 1000)
	require.NoError(t, err)
	for _, seed := range []uint32{0, 3, 4} {
		require.NoError(t, simulator.Configure(setup))
		whole := rtl.SectionTransfers(section)
		cut := whole[:len(whole)-rtl.TransferWords(unit.Input)]
		_, _, err = simulator.Run(Stream{Words: cut, InputSeed: seed, OutputSeed: seed})
		require.NoError(t, err)
		require.EqualValues(t, 1, stateOf(t, simulator).Status)
		require.NoError(t, simulator.Reset())
		require.NoError(t, simulator.Configure(setup))
		results, _, err := simulator.Run(Stream{Words: whole, InputSeed: seed, OutputSeed: seed})
		require.NoError(t, err)
		require.Equal(t, kernelState{250, 0}, stateOf(t, simulator))
		require.Len(t, results, 250*rtl.TransferWords(unit.Output))
	}
}

// TestKernelsFaultsAreFound seeds faults into what lies around a unit; the runs above must find each. Each takes a
// build, so only `make rtl` runs the test.
func TestKernelsFaultsAreFound(t *testing.T) {
	if os.Getenv("MILLRACE_RTL_WHOLE") != "1" {
		t.Skip("`make rtl` runs this test (MILLRACE_RTL_WHOLE=1)")
	}
	const control, reader, writer, shell = "kernel_control.sv", "memory_reader.sv", "memory_writer.sv", "kernel_shell.sv"
	cases := byUnit(unitCases(t, 512, 4))
	for _, fault := range []struct{ name, source, old, fault string }{
		{"the low word goes to the unit's high", control, "{write_data_q, low_q}", "{low_q, write_data_q}"},
		{"a low word writes the unit", control, "to_unit & write_address_q[2];", "to_unit & ~write_address_q[2];"},
		{"a register of the next address", control, "write_address_q[18:3]", "write_address_q[19:4]"},
		{"the address has low bits", control, "input_low_q, 12'b0}", "input_low_q, 12'h008}"},
		{"a run changes during it", control, "whole_q & ~busy;", "whole_q;"},
		{"a run ends before it began", control, "~start_o & (done_q", "(done_q"},
		{"a burst of the rest is full", reader, "{1'b0, unasked_q[3:0]};", "5'd16;"},
		{"the next burst is the same", reader, "next_q + 64'(BurstBytes);", "next_q;"},
		{"a burst has a beat too few", reader, "8'(beats) - 8'd1;", "8'(beats) - 8'd2;"},
		{"an address changes while it waits", reader, "(~arvalid_o | arready_i)", "1'b1"},
		{"a result without room is written", writer, "& ~overflow_o & (results_o < room_i);", ";"},
		{"beats wait for their address", writer, "<= asked_q + (begins ? 6'(beats) : 6'd0)",
			"<= asked_q + (awvalid_o & awready_i ? 6'(awlen_o[4:0]) + 6'd1 : 6'd0)"},
		{"the last burst does not leave", writer, "(ended_i & (unasked_q != '0))", "1'b0"},
		{"the last beat has no mark", writer, "(sent_q == 4'hf) | (asked_q == 6'd1);", "sent_q == 4'hf;"},
		{"a burst begins in the run before's", writer, "wlast_o & pop ? 4'd0 : ", ""},
		{"a full FIFO takes a result", writer, "ready_o  = ~held_q[5];", "ready_o  = 1'b1;"},
		{"a burst before its results", writer, "full     = unasked_q[5:4] != '0;", "full     = unasked_q[5:3] != '0;"},
		{"a run ends before its last result", shell, "& (awaited_q == '0);", ";"},
		{"a run ends before it is in memory", shell, "~(ended & ~writing)", "~ended"},
		{"sections are transfers", shell,
			"enters = in_valid_o & in_ready_i & (Sections != 0 ? in_data_o[InputLast] : 1'b1)",
			"enters = in_valid_o & in_ready_i"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			found := false
			for _, name := range []string{"clamp", "plain_decoder"} {
				unit, err := rtl.Named(name)
				require.NoError(t, err)
				simulator := startKernel(t, unit, func(file, text string) string {
					if file != "rtl/packaging/"+fault.source {
						return text
					}
					require.Equal(t, 1, strings.Count(text, fault.old), "the source must hold %q once", fault.old)
					return strings.Replace(text, fault.old, fault.fault, 1)
				}, "-Wno-lint")
				found = kernelDiffers(t, simulator, unit, cases[name])
				_ = simulator.Close() // the program of a kernel that breaks a rule has ended with an error
				if found {
					break
				}
			}
			require.True(t, found)
		})
	}
}

// kernelDiffers reports whether a kernel's results are not those of the unit, or it breaks a rule, or does not end.
func kernelDiffers(t *testing.T, simulator *Simulator, unit rtl.Unit, cases []unitCase) bool {
	for _, c := range cases {
		if simulator.Configure(c.setup) != nil {
			return true
		}
		want := c.kernel(t, c.stream)
		for seed := range uint32(3) {
			stream := c.stream
			stream.InputSeed, stream.OutputSeed = 2*seed, 3*seed
			results, _, err := simulator.Run(stream)
			if err != nil {
				return true
			}
			said := results
			if c.read != nil {
				if said, err = c.read(results); err != nil {
					return true
				}
			}
			if !slices.Equal(want, said) {
				return true
			}
		}
	}
	if unit.Name != "clamp" {
		return false
	}
	frame := binary.LittleEndian.AppendUint32([]byte{'L'}, 20)
	if _, err := simulator.input.Write(frame); err != nil {
		return true
	}
	results, _, err := simulator.Run(Stream{Words: make([]uint64, 40)})
	return err != nil || len(results) != 20
}
