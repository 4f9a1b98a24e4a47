// The registers of unit text_decoder. Made of units/text_decoder.json; do not edit.
package text_decoder_registers;
  localparam logic [15:0] LabelAbsent = 16'd0;  // 1: lines have no label, and 39 fields
  localparam logic [15:0] Begins = 16'd1;  // 1: the section begins its partition, where a byte order mark is skipped
endpackage
