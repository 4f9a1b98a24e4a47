// The registers of unit dictionary_gather. Made of units/dictionary_gather.json; do not edit.
package dictionary_gather_registers;
  localparam logic [15:0] Size = 16'd16384;  // the dictionary's values
endpackage
