// The registers of unit positive_modulus. Made of units/positive_modulus.json; do not edit.
package positive_modulus_registers;
  localparam logic [15:0] Divisor = 16'd0;  // the modulus
  localparam logic [15:0] Reciprocal = 16'd1;  // ceil(2^(63 + l) / divisor), l = ceil(log2 divisor)
  localparam logic [15:0] Shift = 16'd2;  // l - 1
endpackage
