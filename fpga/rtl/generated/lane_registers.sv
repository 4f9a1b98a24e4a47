// The registers of unit lane. Made of units/lane.json; do not edit.
package lane_registers;
  localparam logic [15:0] Encoded = 16'd40960;  // 1: the section holds indices of the dictionary; 0: PLAIN values
  localparam logic [15:0] Nullable = 16'd40961;  // 1: the table presence says which rows are null; 0: none is
  localparam logic [15:0] Rows = 16'd40962;  // the section's rows
  localparam logic [15:0] Stages = 16'd40963;  // bit k: values go through stage k, of fill_null (0) to positive_modulus (6)
endpackage
