// The registers of unit fill_null. Made of units/fill_null.json; do not edit.
package fill_null_registers;
  localparam logic [15:0] Fill = 16'd0;  // the fill: the bits of the kind
endpackage
