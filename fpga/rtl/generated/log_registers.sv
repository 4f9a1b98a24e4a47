// The registers of unit log. Made of units/log.json; do not edit.
package log_registers;
  localparam logic [15:0] Addend = 16'd0;  // the constant, a float32
endpackage
