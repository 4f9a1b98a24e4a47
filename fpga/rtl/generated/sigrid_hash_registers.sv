// The registers of unit sigrid_hash. Made of units/sigrid_hash.json; do not edit.
package sigrid_hash_registers;
  localparam logic [15:0] Salt = 16'd0;  // the salt
  localparam logic [15:0] Divisor = 16'd1;  // the operator's max
  localparam logic [15:0] Reciprocal = 16'd2;  // ceil(2^(63 + l) / divisor), l = ceil(log2 divisor)
  localparam logic [15:0] Shift = 16'd3;  // l - 1
endpackage
