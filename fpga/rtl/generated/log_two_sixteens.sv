// 16 * index * ln 2, 72 bits behind the point, for the exponents -160 to 143.
// Made by TestLogTables; do not edit.
module log_two_sixteens (
  input  logic clk_i,
  input  logic [4:0] index_i,
  output logic [79:0] value_o
);
  always_ff @(posedge clk_i) begin
    case (index_i)
      5'd22: value_o <= 80'h9118b1051cde53f4a1d2;
      5'd23: value_o <= 80'h9c2fd28499fb4b8f5e70;
      5'd24: value_o <= 80'ha746f4041718432a1b0e;
      5'd25: value_o <= 80'hb25e158394353ac4d7ac;
      5'd26: value_o <= 80'hbd7537031152325f944b;
      5'd27: value_o <= 80'hc88c58828e6f29fa50e9;
      5'd28: value_o <= 80'hd3a37a020b8c21950d87;
      5'd29: value_o <= 80'hdeba9b8188a9192fca25;
      5'd30: value_o <= 80'he9d1bd0105c610ca86c4;
      5'd31: value_o <= 80'hf4e8de8082e308654362;
      5'd0: value_o <= 80'h00000000000000000000;
      5'd1: value_o <= 80'h0b17217f7d1cf79abc9e;
      5'd2: value_o <= 80'h162e42fefa39ef35793c;
      5'd3: value_o <= 80'h2145647e7756e6d035db;
      5'd4: value_o <= 80'h2c5c85fdf473de6af279;
      5'd5: value_o <= 80'h3773a77d7190d605af17;
      5'd6: value_o <= 80'h428ac8fceeadcda06bb5;
      5'd7: value_o <= 80'h4da1ea7c6bcac53b2854;
      5'd8: value_o <= 80'h58b90bfbe8e7bcd5e4f2;
      default: value_o <= '0;
    endcase
  end
endmodule
