package packaging

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Board is a board that a kernel is linked for.
type Board struct {
	Name     string
	Platform string // Platform is AMD's package for Vitis.
	Memory   string // the bank of both memory ports; empty: the only one that there is
}

// Boards are those of the paper's measurements.
func Boards() []Board {
	return []Board{
		{"smartssd", "xilinx_u2_gen3x4_xdma_gc_2_202110_1", ""},
		{"u280", "xilinx_u280_gen3x16_xdma_1_202211_1", "DDR[0]"},
	}
}

// The elements of kernel.xml.
type (
	xmlRoot struct {
		XMLName xml.Name  `xml:"root"`
		Major   int       `xml:"versionMajor,attr"`
		Minor   int       `xml:"versionMinor,attr"`
		Kernel  xmlKernel `xml:"kernel"`
	}
	xmlKernel struct {
		Name       string    `xml:"name,attr"`
		Language   string    `xml:"language,attr"`
		VLNV       string    `xml:"vlnv,attr"`
		Attributes string    `xml:"attributes,attr"`
		Multiple   int       `xml:"preferredWorkGroupSizeMultiple,attr"`
		WorkGroup  int       `xml:"workGroupSize,attr"`
		Interrupt  bool      `xml:"interrupt,attr"`
		Protocol   string    `xml:"hwControlProtocol,attr"`
		Ports      []xmlPort `xml:"ports>port"`
		Args       []xmlArg  `xml:"args>arg"`
	}
	xmlPort struct {
		Name  string `xml:"name,attr"`
		Mode  string `xml:"mode,attr"`
		Range string `xml:"range,attr"`
		Width int    `xml:"dataWidth,attr"`
		Type  string `xml:"portType,attr"`
		Base  string `xml:"base,attr"`
	}
	xmlArg struct {
		Name       string `xml:"name,attr"`
		Qualifier  int    `xml:"addressQualifier,attr"` // 1: a buffer's address; 0: a number
		ID         int    `xml:"id,attr"`
		Port       string `xml:"port,attr"`
		Size       string `xml:"size,attr"`
		Offset     string `xml:"offset,attr"`
		HostOffset string `xml:"hostOffset,attr"`
		HostSize   string `xml:"hostSize,attr"`
		Type       string `xml:"type,attr"`
	}
)

// description returns kernel.xml. The kernel is user-managed: the host writes its registers itself.
func (k Kernel) description() (string, error) {
	root := xmlRoot{Major: 1, Minor: 9, Kernel: xmlKernel{Name: k.Name, Language: "ip", VLNV: k.vlnv(), WorkGroup: 1,
		Protocol: "user_managed", Ports: []xmlPort{
			{controlPort, "slave", fmt.Sprintf("%#x", WindowSize), 32, "addressable", "0x0"},
			{inputPort, "master", "0xFFFFFFFFFFFFFFFF", k.InputBits, "addressable", "0x0"},
			{outputPort, "master", "0xFFFFFFFFFFFFFFFF", k.OutputBits, "addressable", "0x0"},
		}}}
	for id, a := range k.Arguments {
		arg := xmlArg{Name: a.Name, ID: id, Port: a.Port, Size: fmt.Sprintf("%#x", a.Bytes),
			Offset: fmt.Sprintf("%#x", a.Offset), HostOffset: "0x0", HostSize: fmt.Sprintf("%#x", a.Bytes)}
		switch {
		case a.Port != controlPort:
			arg.Qualifier, arg.Type = 1, "void*"
		case a.Bytes == 8:
			arg.Type = "ulong"
		default:
			arg.Type = "uint"
		}
		root.Kernel.Args = append(root.Kernel.Args, arg)
	}
	text, err := xml.MarshalIndent(root, "", "  ")
	if err != nil {
		return "", fmt.Errorf("packaging: unit %s: kernel.xml: %w", k.Unit.Name, err)
	}
	var b strings.Builder
	b.WriteString(xml.Header + "<!--\n" + k.generated(" "))
	for _, t := range k.Tables {
		fmt.Fprintf(&b, "  Table %s: %d registers of 8 bytes from %#x on.\n", t.Name, t.Entries, t.Offset)
	}
	return b.String() + "-->\n" + string(text) + "\n", nil
}

// vlnv returns the kernel's name in Vivado's form: vendor, library, name, version.
func (k Kernel) vlnv() string { return "millrace:kernel:" + k.Name + ":1.0" }

// packageScript returns the script with which Vivado makes the kernel's .xo.
func (k Kernel) packageScript() string {
	return k.generated("#") + fmt.Sprintf(`# Run it with: vivado -mode batch -source package.tcl
# It writes %[1]s.xo beside itself.
set folder [file dirname [file normalize [info script]]]
create_project -force package $folder/package
add_files -norecurse [list \
%[2]s]
set_property top %[1]s [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $folder/package/ip -vendor millrace -library kernel -taxonomy /KernelIP \
  -import_files -set_current true
set core [ipx::current_core]
set_property name %[1]s $core
set_property version 1.0 $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
foreach bus {%[3]s %[4]s %[5]s} {
  ipx::associate_bus_interfaces -busif $bus -clock ap_clk $core
}
ipx::associate_bus_interfaces -clock ap_clk -reset ap_rst_n $core
set block [ipx::get_address_blocks -of_objects [ipx::get_memory_maps %[3]s -of_objects $core]]
set_property range %[6]d $block
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core

package_xo -force -xo_path $folder/%[1]s.xo -kernel_name %[1]s -ip_directory $folder/package/ip \
  -kernel_xml $folder/kernel.xml
close_project
`, k.Name, k.sourceList(), controlPort, inputPort, outputPort, WindowSize)
}

// sourceList returns the kernel's sources as elements of a list in Tcl, a line each.
func (k Kernel) sourceList() string {
	var b strings.Builder
	for _, name := range k.sources() {
		fmt.Fprintf(&b, "  $folder/%s \\\n", name)
	}
	return b.String()
}

// linkScript returns the script that has v++ link the kernel for a board.
func (k Kernel) linkScript() string {
	var names []string
	for _, board := range Boards() {
		names = append(names, board.Name)
	}
	boards := strings.Join(names, " ")
	return k.generated("#") + fmt.Sprintf(`# Run it with: tclsh link.tcl BOARD, where BOARD is one of: %[2]s
# It writes %[1]s.BOARD.xclbin beside itself, of the .xo that package.tcl wrote. v++ is a part of Vitis.
set folder [file dirname [file normalize [info script]]]
set board [lindex $argv 0]
if {[llength $argv] != 1 || $board ni {%[2]s}} {
  puts stderr "link.tcl: want one board of: %[2]s"
  exit 2
}
exec v++ --link --target hw --config $folder/$board.cfg --temp_dir $folder/link.$board \
  --output $folder/%[1]s.$board.xclbin $folder/%[1]s.xo >@ stdout 2>@ stderr
`, k.Name, boards)
}

// linkConfiguration returns the configuration of the link for a board.
func (k Kernel) linkConfiguration(board Board, clockKHz uint32) string {
	var b strings.Builder
	b.WriteString(k.generated("#"))
	fmt.Fprintf(&b, "platform=%s\n", board.Platform)
	fmt.Fprintf(&b, "# The clock that is requested. The tools may grant a slower one, and nobody has run them.\n")
	fmt.Fprintf(&b, "kernel_frequency=%d\n\n[connectivity]\nnk=%s:1:%s_1\n", clockKHz/1000, k.Name, k.Name)
	if board.Memory != "" {
		for _, port := range []string{inputPort, outputPort} {
			fmt.Fprintf(&b, "sp=%s_1.%s:%s\n", k.Name, port, board.Memory)
		}
	}
	return b.String()
}
