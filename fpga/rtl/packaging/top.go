package packaging

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/millrace/millrace/fpga/rtl"
)

// port is a port of the top module.
type port struct {
	name   string
	bits   int
	output bool
	shell  string // the port of kernel_shell, or a constant that the port has
}

// constant reports whether the port has a constant value.
func (p port) constant() bool { return strings.Contains(p.shell, "'") }

// ports returns the ports of the top module, which have the names that Vivado infers interfaces from.
func (k Kernel) ports() []port {
	control := func(name string, bits int, output bool) port {
		direction := "_i"
		if output {
			direction = "_o"
		}
		return port{controlPort + "_" + name, bits, output, "control_" + name + direction}
	}
	size := func(beat int) string { return fmt.Sprintf("3'd%d", bits.Len(uint(beat/8))-1) }
	return []port{
		{"ap_clk", 1, false, "clk_i"}, {"ap_rst_n", 1, false, "rst_ni"},
		control("awvalid", 1, false), control("awready", 1, true), control("awaddr", 20, false),
		control("wvalid", 1, false), control("wready", 1, true), control("wdata", 32, false), control("wstrb", 4, false),
		control("bvalid", 1, true), control("bready", 1, false), {controlPort + "_bresp", 2, true, "2'b00"},
		control("arvalid", 1, false), control("arready", 1, true), control("araddr", 20, false),
		control("rvalid", 1, true), control("rready", 1, false), control("rdata", 32, true),
		{controlPort + "_rresp", 2, true, "2'b00"},

		{inputPort + "_arvalid", 1, true, "arvalid_o"}, {inputPort + "_arready", 1, false, "arready_i"},
		{inputPort + "_araddr", 64, true, "araddr_o"}, {inputPort + "_arlen", 8, true, "arlen_o"},
		{inputPort + "_arsize", 3, true, size(k.InputBits)}, {inputPort + "_arburst", 2, true, "2'b01"},
		{inputPort + "_rvalid", 1, false, "rvalid_i"}, {inputPort + "_rready", 1, true, "rready_o"},
		{inputPort + "_rdata", k.InputBits, false, "rdata_i"}, {inputPort + "_rresp", 2, false, "rresp_i"},
		{inputPort + "_rlast", 1, false, ""},

		{outputPort + "_awvalid", 1, true, "awvalid_o"}, {outputPort + "_awready", 1, false, "awready_i"},
		{outputPort + "_awaddr", 64, true, "awaddr_o"}, {outputPort + "_awlen", 8, true, "awlen_o"},
		{outputPort + "_awsize", 3, true, size(k.OutputBits)}, {outputPort + "_awburst", 2, true, "2'b01"},
		{outputPort + "_wvalid", 1, true, "wvalid_o"}, {outputPort + "_wready", 1, false, "wready_i"},
		{outputPort + "_wdata", k.OutputBits, true, "wdata_o"},
		{outputPort + "_wstrb", k.OutputBits / 8, true, fmt.Sprintf("{%d{1'b1}}", k.OutputBits/8)},
		{outputPort + "_wlast", 1, true, "wlast_o"},
		{outputPort + "_bvalid", 1, false, "bvalid_i"}, {outputPort + "_bready", 1, true, "bready_o"},
		{outputPort + "_bresp", 2, false, "bresp_i"},
	}
}

// top returns the top module in Verilog: the unit, the shell around it, and nothing else.
func (k Kernel) top() string {
	var b strings.Builder
	b.WriteString(k.generated("//"))
	fmt.Fprintf(&b, "module %s (\n", k.Name)
	ports := k.ports()
	for i, p := range ports {
		direction, comma := "input ", ","
		if p.output {
			direction = "output"
		}
		if i == len(ports)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "  %s wire %-10s %s%s\n", direction, vector(p.bits), p.name, comma)
	}
	b.WriteString(");\n")
	in, out := rtl.TransferBits(k.Unit.Input), rtl.TransferBits(k.Unit.Output)
	for _, w := range []struct {
		name string
		bits int
	}{{"register_write", 1}, {"register_address", 16}, {"register_data", 64}, {"in_valid", 1}, {"in_ready", 1},
		{"in_data", in}, {"out_valid", 1}, {"out_ready", 1}, {"out_data", out}} {
		fmt.Fprintf(&b, "  wire %-10s %s;\n", vector(w.bits), w.name)
	}
	b.WriteString("\n")
	for _, p := range ports {
		if p.constant() {
			fmt.Fprintf(&b, "  assign %s = %s;\n", p.name, p.shell)
		}
	}
	fmt.Fprintf(&b, "  wire unused_rlast = %s_rlast;\n", inputPort) // the shell counts the beats
	fmt.Fprintf(&b, "\n  kernel_shell #(\n%s  ) u_shell (\n", indented(k.parameters(), 4))
	for _, p := range ports {
		if p.shell != "" && !p.constant() {
			fmt.Fprintf(&b, "    .%s(%s),\n", p.shell, p.name)
		}
	}
	b.WriteString("    .register_write_o(register_write), .register_address_o(register_address),\n" +
		"    .register_data_o(register_data),\n" +
		"    .in_valid_o(in_valid), .in_ready_i(in_ready), .in_data_o(in_data),\n" +
		"    .out_valid_i(out_valid), .out_ready_o(out_ready), .out_data_i(out_data)\n  );\n\n")
	fmt.Fprintf(&b, "  %s u_unit (\n    .clk_i(ap_clk), .rst_ni(ap_rst_n),\n", k.Unit.Name)
	b.WriteString("    .register_write_i(register_write), .register_address_i(register_address),\n" +
		"    .register_data_i(register_data),\n" +
		"    .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data),\n" +
		"    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data)\n  );\nendmodule\n")
	return b.String()
}

// parameters returns the parameters of the shell, a line each.
func (k Kernel) parameters() string {
	sections, inputLast, outputLast := 0, 0, 0
	if bit, ok := rtl.LastBit(k.Unit.Input); ok {
		sections, inputLast = 1, bit
		outputLast, _ = rtl.LastBit(k.Unit.Output)
	}
	return fmt.Sprintf(".InputBits(%d), .InputWidth(%d), .OutputBits(%d), .OutputWidth(%d),\n"+
		".Sections(%d), .InputLast(%d), .OutputLast(%d)\n", rtl.TransferBits(k.Unit.Input), k.InputBits,
		rtl.TransferBits(k.Unit.Output), k.OutputBits, sections, inputLast, outputLast)
}

// vector returns the range of a vector, or nothing for one bit.
func vector(bits int) string {
	if bits == 1 {
		return ""
	}
	return fmt.Sprintf("[%d:0]", bits-1)
}
