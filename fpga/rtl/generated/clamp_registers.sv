// The registers of unit clamp. Made of units/clamp.json; do not edit.
package clamp_registers;
  localparam logic [15:0] Float = 16'd0;  // 1: values are float32
  localparam logic [15:0] Least = 16'd1;  // the least value
  localparam logic [15:0] Greatest = 16'd2;  // the greatest value
endpackage
