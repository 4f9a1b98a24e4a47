// The float32 nearest to the natural logarithm of (1 + fraction / 2^23) * 2^exponent.
//
// The number is 2^k z, with z in [0.6875, 1.375). Three tables of factors bring z nearer and nearer to 1:
//
//   z * reciprocal     = 1 + r1,  |r1| < 2^-7    (exact, 33 bits behind the point)
//   (1 + r1) * (1 - f) = 1 + r2,  |r2| < 2^-15   (exact, 50 bits)
//   (1 + r2) * (1 - g) = 1 + r3,  |r3| <= 2^-23  (exact, 74 bits)
//
// and so ln = k ln 2 - ln reciprocal - ln(1 - f) - ln(1 - g) + ln(1 + r3), with ln(1 + r3) = r3 - r3^2 / 2 but for a
// cube below 2^-70. The factors next to 1 are 1, so that nothing cancels near ln 1. The sum has 72 bits behind the
// point. That suffices for each of the 2^31 positive float32, as a sweep of all of them shows (TestLogModel). No
// logarithm of a float32 lies half way between two float32, so rounding looks at one bit only. That of 1 - 2^-23 is
// half way but for the cube: one unit less in the sum stands for it. Below zero the magnitude is the complement of the
// sum, so that ln 1, which is one unit below zero here, is 0.
//
// The latency is 21 cycles; the co-simulation of the units around it counts them.
module natural_logarithm (
  input  logic               clk_i,
  input  logic               invalid_i,   // the result is the NaN 7fc00000h
  input  logic               infinite_i,  // plus infinity, and so is the result
  input  logic               zero_i,      // the result is minus infinity
  input  logic signed [8:0]  exponent_i,
  input  logic [22:0]        fraction_i,

  output logic [31:0]        logarithm_o
);
  // Cycle 1: the reciprocal. From 1.375 on z is half the significand.
  logic [6:0]        index1;
  logic [10:0]       reciprocal;
  logic [23:0]       significand_q;
  logic signed [8:0] k_q;
  assign index1 = fraction_i[22:16];
  log_reciprocals u_reciprocals (.clk_i, .index_i(index1), .value_o(reciprocal));
  always_ff @(posedge clk_i) begin
    significand_q <= {1'b1, fraction_i};
    k_q           <= exponent_i + $signed({8'b0, index1 >= 7'd48});
  end

  // Cycle 2: r1 is the product less 1, which has no bit in these.
  logic signed [26:0] r1_q;
  always_ff @(posedge clk_i) r1_q <= 27'(35'(significand_q) * 35'(reciprocal));

  // Cycles 3 to 6: f and r2.
  logic signed [11:0] f, f4_q;
  logic signed [26:0] r1_3_q, r1_4_q;
  logic signed [35:0] base2_q, product2_q, r2_q;
  logic [8:0]         index2;
  assign index2 = r1_q[26:18];
  log_factors u_factors (.clk_i, .index_i(index2), .value_o(f));
  always_ff @(posedge clk_i) begin
    r1_3_q     <= r1_q;
    r1_4_q     <= r1_3_q;
    f4_q       <= f;
    product2_q <= 36'(r1_4_q * f4_q);
    base2_q    <= {r1_4_q[18:0], 17'b0} - {f4_q[2:0], 33'b0};
    r2_q       <= base2_q - product2_q;
  end

  // Cycles 7 to 10: g is the middle of the values of r2 with the same nine bits, and r3.
  logic [8:0]         index3;
  logic signed [9:0]  g7_q;
  logic signed [35:0] r2_7_q;
  logic signed [36:0] low3_q;
  logic signed [19:0] high3_q;
  logic signed [45:0] product3_q;
  logic signed [51:0] base3_q, base3_9_q, r3_q;
  assign index3 = r2_q[35:27];
  always_ff @(posedge clk_i) begin
    g7_q       <= (index3 == '0 || index3 == '1) ? '0 : {index3, 1'b1};
    r2_7_q     <= r2_q;
    low3_q     <= 37'($signed({1'b0, r2_7_q[25:0]}) * g7_q);
    high3_q    <= $signed(r2_7_q[35:26]) * g7_q;
    base3_q    <= {r2_7_q[27:0], 24'b0} - {g7_q[1:0], 50'b0};
    product3_q <= 46'(low3_q) + {high3_q, 26'b0};
    base3_9_q  <= base3_q;
    r3_q       <= base3_9_q - 52'(product3_q);
  end

  // Cycles 11 to 13: r3 - r3^2 / 2 with 72 bits. The square is that of r3 with 49 bits.
  logic signed [26:0] root;
  logic signed [44:0] low_square_q;
  logic signed [36:0] high_square_q;
  logic signed [53:0] square_q;
  logic signed [49:0] r3_11_q, r3_12_q;
  logic signed [50:0] tail_q;
  assign root = r3_q[51:25];
  always_ff @(posedge clk_i) begin
    low_square_q  <= 45'(root * $signed({1'b0, root[16:0]}));
    high_square_q <= root * $signed(root[26:17]);
    square_q      <= 54'(low_square_q) + {high_square_q, 17'b0};
    r3_11_q       <= r3_q[51:2];
    r3_12_q       <= r3_11_q;
    tail_q        <= 51'(r3_12_q) + $signed(~{24'b0, square_q[53:27]});  // one unit less
  end
  logic unused_bits;
  assign unused_bits = ^{r3_q[1:0], square_q[26:0]};

  // Cycles 12 and 13: the logarithms of the factors and the multiple of ln 2.
  logic [6:0]        index1_12;
  logic [8:0]        index2_12, index3_12;
  logic signed [8:0] k12;
  delay_line #(.Width(7), .Cycles(12)) u_index1 (.clk_i, .data_i(index1), .data_o(index1_12));
  delay_line #(.Width(9), .Cycles(10)) u_index2 (.clk_i, .data_i(index2), .data_o(index2_12));
  delay_line #(.Width(9), .Cycles(6)) u_index3 (.clk_i, .data_i(index3), .data_o(index3_12));
  delay_line #(.Width(9), .Cycles(11)) u_k (.clk_i, .data_i(k_q), .data_o(k12));
  logic signed [71:0] log1;
  logic signed [66:0] log2;
  logic signed [57:0] log3;
  logic [75:0]        units;      // k mod 16 times ln 2
  logic signed [79:0] sixteens;   // the rest of k times ln 2
  log_of_reciprocals u_log1 (.clk_i, .index_i(index1_12), .value_o(log1));
  log_of_factors u_log2 (.clk_i, .index_i(index2_12), .value_o(log2));
  log_of_corrections u_log3 (.clk_i, .index_i(index3_12), .value_o(log3));
  log_two_units u_units (.clk_i, .index_i(k12[3:0]), .value_o(units));
  log_two_sixteens u_sixteens (.clk_i, .index_i(k12[8:4]), .value_o(sixteens));

  // Cycles 14 to 16: the sum.
  logic signed [58:0] fine_q, fine15_q;
  logic signed [72:0] middle_q;
  logic signed [79:0] coarse_q, coarse15_q, sum_q;
  always_ff @(posedge clk_i) begin
    fine_q     <= 59'(tail_q) + 59'(log3);
    middle_q   <= 73'(log1) + 73'(log2);
    coarse_q   <= sixteens + $signed({4'b0, units});
    fine15_q   <= fine_q;
    coarse15_q <= coarse_q + 80'(middle_q);
    sum_q      <= coarse15_q + 80'(fine15_q);
  end

  // Cycles 17 to 20: the magnitude, of which no more than 31 bits lie before the first one, without these.
  logic        negative17_q, negative18_q, negative19_q, negative20_q, none18_q, none19_q, none20_q;
  logic [78:0] magnitude17_q;
  logic [55:0] magnitude18_q;
  logic [4:0]  zeros, zeros18_q, zeros19_q, zeros20_q;
  logic [31:0] shifted, shifted19_q;
  logic [24:0] normal20_q;
  leading_zeros u_zeros (.value_i(magnitude17_q[78:47]), .count_o(zeros));
  assign shifted = 32'(magnitude18_q >> (5'd24 - {zeros18_q[4:3], 3'b000}));
  always_ff @(posedge clk_i) begin
    negative17_q  <= sum_q[79];
    magnitude17_q <= sum_q[78:0] ^ {79{sum_q[79]}};
    negative18_q  <= negative17_q;
    magnitude18_q <= magnitude17_q[78:23];
    zeros18_q     <= zeros;
    none18_q      <= magnitude17_q[78:47] == '0;
    negative19_q  <= negative18_q;
    shifted19_q   <= shifted;
    zeros19_q     <= zeros18_q;
    none19_q      <= none18_q;
    negative20_q  <= negative19_q;
    normal20_q    <= 25'(shifted19_q >> (3'd7 - zeros19_q[2:0]));
    zeros20_q     <= zeros19_q;
    none20_q      <= none19_q;
  end
  logic unused_magnitude;
  assign unused_magnitude = ^{magnitude17_q[22:0], normal20_q[24]};

  // Cycle 21: rounding. A carry out of the fraction goes into the exponent.
  logic invalid20, infinite20, zero20;
  delay_line #(.Width(3), .Cycles(20)) u_special (
    .clk_i, .data_i({invalid_i, infinite_i, zero_i}), .data_o({invalid20, infinite20, zero20})
  );
  logic [30:0] rounded;
  assign rounded = {8'd133 - 8'(zeros20_q), normal20_q[23:1]} + 31'(normal20_q[0]);
  always_ff @(posedge clk_i) begin
    if (invalid20) logarithm_o <= 32'h7fc0_0000;
    else if (infinite20) logarithm_o <= 32'h7f80_0000;
    else if (zero20) logarithm_o <= 32'hff80_0000;
    else if (none20_q) logarithm_o <= '0;
    else logarithm_o <= {negative20_q, rounded};
  end
endmodule
