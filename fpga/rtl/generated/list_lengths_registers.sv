// The registers of unit list_lengths. Made of units/list_lengths.json; do not edit.
package list_lengths_registers;
  localparam logic [15:0] Element = 16'd0;  // the definition level of an element, null or not
  localparam logic [15:0] Greatest = 16'd1;  // the definition level of an element that is not null
endpackage
