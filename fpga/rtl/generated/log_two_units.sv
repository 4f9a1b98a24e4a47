// index * ln 2, 72 bits behind the point.
// Made by TestLogTables; do not edit.
module log_two_units (
  input  logic clk_i,
  input  logic [3:0] index_i,
  output logic [75:0] value_o
);
  always_ff @(posedge clk_i) begin
    case (index_i)
      4'd0: value_o <= 76'h0000000000000000000;
      4'd1: value_o <= 76'h0b17217f7d1cf79abca;
      4'd2: value_o <= 76'h162e42fefa39ef35794;
      4'd3: value_o <= 76'h2145647e7756e6d035e;
      4'd4: value_o <= 76'h2c5c85fdf473de6af28;
      4'd5: value_o <= 76'h3773a77d7190d605af1;
      4'd6: value_o <= 76'h428ac8fceeadcda06bb;
      4'd7: value_o <= 76'h4da1ea7c6bcac53b285;
      4'd8: value_o <= 76'h58b90bfbe8e7bcd5e4f;
      4'd9: value_o <= 76'h63d02d7b6604b470a19;
      4'd10: value_o <= 76'h6ee74efae321ac0b5e3;
      4'd11: value_o <= 76'h79fe707a603ea3a61ad;
      4'd12: value_o <= 76'h851591f9dd5b9b40d77;
      4'd13: value_o <= 76'h902cb3795a7892db941;
      4'd14: value_o <= 76'h9b43d4f8d7958a7650a;
      4'd15: value_o <= 76'ha65af67854b282110d4;
    endcase
  end
endmodule
