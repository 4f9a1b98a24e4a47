# The kernel of unit lane, made by `millrace image package`. No tool of AMD's has read this file yet.
# Run it with: tclsh link.tcl BOARD, where BOARD is one of: smartssd u280
# It writes millrace_lane.BOARD.xclbin beside itself, of the .xo that package.tcl wrote. v++ is a part of Vitis.
set folder [file dirname [file normalize [info script]]]
set board [lindex $argv 0]
if {[llength $argv] != 1 || $board ni {smartssd u280}} {
  puts stderr "link.tcl: want one board of: smartssd u280"
  exit 2
}
exec v++ --link --target hw --config $folder/$board.cfg --temp_dir $folder/link.$board \
  --output $folder/millrace_lane.$board.xclbin $folder/millrace_lane.xo >@ stdout 2>@ stderr
