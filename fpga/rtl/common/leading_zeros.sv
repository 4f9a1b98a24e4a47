// The zeros before the first one of 32 bits; 31 if there is none.
module leading_zeros (
  input  logic [31:0] value_i,
  output logic [4:0]  count_o
);
  logic        none16, none8, none4, none2, none1;  // before the first one of what is left
  logic [15:0] half;
  logic [7:0]  quarter;
  logic [3:0]  eighth;
  assign none16  = value_i[31:16] == '0;
  assign half    = none16 ? value_i[15:0] : value_i[31:16];
  assign none8   = half[15:8] == '0;
  assign quarter = none8 ? half[7:0] : half[15:8];
  assign none4   = quarter[7:4] == '0;
  assign eighth  = none4 ? quarter[3:0] : quarter[7:4];
  assign none2   = eighth[3:2] == '0;
  assign none1   = none2 ? ~eighth[1] : ~eighth[3];
  assign count_o = {none16, none8, none4, none2, none1};
  logic unused_last;
  assign unused_last = eighth[0];
endmodule
