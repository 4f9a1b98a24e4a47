# The kernel of unit clamp, made by `millrace image package`. No tool of AMD's has read this file yet.
# Run it with: vivado -mode batch -source package.tcl
# It writes millrace_clamp.xo beside itself.
set folder [file dirname [file normalize [info script]]]
create_project -force package $folder/package
add_files -norecurse [list \
  $folder/rtl/generated/clamp_registers.sv \
  $folder/rtl/common/stream_credit_pipe.sv \
  $folder/rtl/transform/clamp.sv \
  $folder/rtl/packaging/kernel_registers.sv \
  $folder/rtl/packaging/kernel_control.sv \
  $folder/rtl/packaging/memory_reader.sv \
  $folder/rtl/packaging/memory_writer.sv \
  $folder/rtl/packaging/kernel_shell.sv \
  $folder/rtl/millrace_clamp.v \
]
set_property top millrace_clamp [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $folder/package/ip -vendor millrace -library kernel -taxonomy /KernelIP \
  -import_files -set_current true
set core [ipx::current_core]
set_property name millrace_clamp $core
set_property version 1.0 $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
foreach bus {s_axi_control m_axi_input m_axi_output} {
  ipx::associate_bus_interfaces -busif $bus -clock ap_clk $core
}
ipx::associate_bus_interfaces -clock ap_clk -reset ap_rst_n $core
set block [ipx::get_address_blocks -of_objects [ipx::get_memory_maps s_axi_control -of_objects $core]]
set_property range 1048576 $block
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core

package_xo -force -xo_path $folder/millrace_clamp.xo -kernel_name millrace_clamp -ip_directory $folder/package/ip \
  -kernel_xml $folder/kernel.xml
close_project
