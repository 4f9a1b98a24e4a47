// The registers of unit row_packer. Made of units/row_packer.json; do not edit.
package row_packer_registers;
  localparam logic [15:0] Rows = 16'd0;  // values of a column, 1 to 512
endpackage
