// The remainder of a signed number by a divisor of at most 32 bits, rounded towards minus infinity: in [0, divisor).
//
// The quotient is the high part of a product with a reciprocal (Granlund and Montgomery, PLDI 1994), which the host
// computes once: reciprocal = ceil(2^(63 + l) / divisor) and shift = l - 1, with l = ceil(log2 divisor). A negative
// number is folded onto its complement. The divisor 1 has no such reciprocal; its remainders are 0.
//
// The latency is 14 cycles; the co-simulation of the units around it counts them.
module floor_modulus (
  input  logic        clk_i,
  // They stay as they are while values are under way.
  input  logic [63:0] reciprocal_i,
  input  logic [5:0]  shift_i,
  input  logic [31:0] divisor_i,

  input  logic [63:0] value_i,
  output logic [31:0] remainder_o
);
  // Cycle 1: the complement of a negative number.
  logic        negative_q;
  logic [63:0] folded_q;
  always_ff @(posedge clk_i) begin
    negative_q <= value_i[63];
    folded_q   <= value_i ^ {64{value_i[63]}};
  end

  // Cycles 2 to 7: the product with the reciprocal. Tiles: 3 x 4.
  logic [63:0] product;
  multiplier #(.AWidth(64), .BWidth(64), .ProductWidth(128), .LowBit(64)) u_quotient (
    .clk_i, .a_i(reciprocal_i), .b_i(folded_q), .product_o(product)
  );

  // Cycle 8: the quotient. Its low 32 bits suffice, since the remainder is below 2^32.
  logic [31:0] quotient_q;
  always_ff @(posedge clk_i) quotient_q <= 32'(product >> shift_i);

  // Cycles 9 to 12: quotient x divisor. Tiles: 2 x 2.
  logic [31:0] multiple;
  multiplier #(.AWidth(32), .BWidth(32), .ProductWidth(32)) u_multiple (
    .clk_i, .a_i(quotient_q), .b_i(divisor_i), .product_o(multiple)
  );

  logic        negative;
  logic [31:0] folded;
  delay_line #(.Width(33), .Cycles(11)) u_delay (
    .clk_i, .data_i({negative_q, folded_q[31:0]}), .data_o({negative, folded})
  );

  // Cycle 13: the remainder of the folded number. Cycle 14: that of the number.
  logic        negative_r_q;
  logic [31:0] folded_remainder_q;
  always_ff @(posedge clk_i) begin
    negative_r_q       <= negative;
    folded_remainder_q <= folded - multiple;
    if (divisor_i == 32'd1) remainder_o <= '0;
    else if (negative_r_q) remainder_o <= divisor_i + ~folded_remainder_q;
    else remainder_o <= folded_remainder_q;
  end
endmodule
