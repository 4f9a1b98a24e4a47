// The registers of unit hybrid_decoder. Made of units/hybrid_decoder.json; do not edit.
package hybrid_decoder_registers;
  localparam logic [15:0] Width = 16'd0;  // bits of a value, 0 to 32
  localparam logic [15:0] Limit = 16'd1;  // the greatest value, at most 2^width - 1
  localparam logic [15:0] Count = 16'd2;  // the section's values
endpackage
