// The registers of unit vocabulary. Made of units/vocabulary.json; do not edit.
package vocabulary_registers;
  localparam logic [15:0] Fixed = 16'd32768;  // 1: keys are looked up in the host's vocabulary; 0: the unit makes one
  localparam logic [15:0] Size = 16'd32769;  // keys of the host's vocabulary
endpackage
