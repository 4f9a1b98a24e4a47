// The registers of unit plain_decoder. Made of units/plain_decoder.json; do not edit.
package plain_decoder_registers;
  localparam logic [15:0] Wide = 16'd0;  // 1: a value has 8 bytes; 0: 4
  localparam logic [15:0] Signed = 16'd1;  // 1: a value of 4 bytes is widened by its sign; 0: by 0
  localparam logic [15:0] Count = 16'd2;  // the section's values
endpackage
