// The registers of unit hex_to_int. Made of units/hex_to_int.json; do not edit.
package hex_to_int_registers;
  localparam logic [15:0] Nullable = 16'd0;  // 1: an empty token is a null
endpackage
