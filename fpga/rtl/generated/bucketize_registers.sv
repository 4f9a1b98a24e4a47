// The registers of unit bucketize. Made of units/bucketize.json; do not edit.
package bucketize_registers;
  localparam logic [15:0] Several = 16'd4096;  // 1: there are two borders or more
  localparam logic [15:0] Last = 16'd4097;  // the 4096th border: {whether it is there, its order}
endpackage
