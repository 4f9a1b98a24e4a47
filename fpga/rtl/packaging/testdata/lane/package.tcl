# The kernel of unit lane, made by `millrace image package`. No tool of AMD's has read this file yet.
# Run it with: vivado -mode batch -source package.tcl
# It writes millrace_lane.xo beside itself.
set folder [file dirname [file normalize [info script]]]
create_project -force package $folder/package
add_files -norecurse [list \
  $folder/rtl/generated/lane_registers.sv \
  $folder/rtl/generated/plain_decoder_registers.sv \
  $folder/rtl/generated/hybrid_decoder_registers.sv \
  $folder/rtl/generated/dictionary_gather_registers.sv \
  $folder/rtl/generated/fill_null_registers.sv \
  $folder/rtl/generated/clamp_registers.sv \
  $folder/rtl/generated/int_to_float_registers.sv \
  $folder/rtl/generated/log_registers.sv \
  $folder/rtl/generated/bucketize_registers.sv \
  $folder/rtl/generated/sigrid_hash_registers.sv \
  $folder/rtl/generated/positive_modulus_registers.sv \
  $folder/rtl/common/byte_queue.sv \
  $folder/rtl/common/stream_credit_pipe.sv \
  $folder/rtl/common/leading_zeros.sv \
  $folder/rtl/generated/log_reciprocals.sv \
  $folder/rtl/generated/log_of_reciprocals.sv \
  $folder/rtl/generated/log_factors.sv \
  $folder/rtl/generated/log_of_factors.sv \
  $folder/rtl/generated/log_of_corrections.sv \
  $folder/rtl/generated/log_two_units.sv \
  $folder/rtl/generated/log_two_sixteens.sv \
  $folder/rtl/common/delay_line.sv \
  $folder/rtl/common/float_sum.sv \
  $folder/rtl/common/natural_logarithm.sv \
  $folder/rtl/common/floor_modulus.sv \
  $folder/rtl/common/multiplier.sv \
  $folder/rtl/common/clock_gate.sv \
  $folder/rtl/common/stage_bypass.sv \
  $folder/rtl/decode/value_spread.sv \
  $folder/rtl/decode/plain_decoder.sv \
  $folder/rtl/decode/hybrid_decoder.sv \
  $folder/rtl/decode/dictionary_gather.sv \
  $folder/rtl/transform/fill_null.sv \
  $folder/rtl/transform/clamp.sv \
  $folder/rtl/transform/int_to_float.sv \
  $folder/rtl/transform/log.sv \
  $folder/rtl/transform/bucketize.sv \
  $folder/rtl/transform/sigrid_hash.sv \
  $folder/rtl/transform/positive_modulus.sv \
  $folder/rtl/transform/lane.sv \
  $folder/rtl/packaging/kernel_registers.sv \
  $folder/rtl/packaging/kernel_control.sv \
  $folder/rtl/packaging/memory_reader.sv \
  $folder/rtl/packaging/memory_writer.sv \
  $folder/rtl/packaging/kernel_shell.sv \
  $folder/rtl/millrace_lane.v \
]
set_property top millrace_lane [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $folder/package/ip -vendor millrace -library kernel -taxonomy /KernelIP \
  -import_files -set_current true
set core [ipx::current_core]
set_property name millrace_lane $core
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

package_xo -force -xo_path $folder/millrace_lane.xo -kernel_name millrace_lane -ip_directory $folder/package/ip \
  -kernel_xml $folder/kernel.xml
close_project
