// The sum of a float32 and a constant, rounded to nearest even, in the form that a logarithm takes.
//
// A positive finite sum is (1 + fraction / 2^23) * 2^exponent, with an exponent that reaches down to -149, so that the
// subnormal float32 have no form of their own. Other sums are zero, plus infinity, or have no logarithm: a NaN, minus
// infinity and every number below zero.
//
// The latency is 7 cycles; the co-simulation of the units around it counts them.
module float_sum (
  input  logic               clk_i,
  input  logic [31:0]        constant_i,  // stays as it is while values are under way
  input  logic [31:0]        value_i,

  output logic               invalid_o,   // no logarithm
  output logic               infinite_o,  // plus infinity
  output logic               zero_o,
  output logic signed [8:0]  exponent_o,
  output logic [22:0]        fraction_o
);
  // A subnormal number has the exponent of the smallest normal one, and no hidden bit.
  function automatic logic [7:0] exponent_of(input logic [7:0] field);
    exponent_of = field == '0 ? 8'd1 : field;
  endfunction
  function automatic logic [23:0] significand_of(input logic [30:0] magnitude);
    significand_of = {magnitude[30:23] != '0, magnitude[22:0]};
  endfunction
  function automatic logic is_nan(input logic [30:0] magnitude);
    is_nan = magnitude > 31'h7f80_0000;
  endfunction
  function automatic logic is_infinite(input logic [30:0] magnitude);
    is_infinite = magnitude == 31'h7f80_0000;
  endfunction

  // Cycle 1: which operand has the greater magnitude, and how far apart the exponents are.
  logic        swap_q, subtract1_q, invalid1_q, infinite1_q;
  logic [31:0] value1_q;
  logic [7:0]  ahead1_q, behind1_q;
  always_ff @(posedge clk_i) begin
    value1_q    <= value_i;
    swap_q      <= value_i[30:0] < constant_i[30:0];
    ahead1_q    <= exponent_of(value_i[30:23]) - exponent_of(constant_i[30:23]);
    behind1_q   <= exponent_of(constant_i[30:23]) - exponent_of(value_i[30:23]);
    subtract1_q <= value_i[31] ^ constant_i[31];
    invalid1_q  <= is_nan(value_i[30:0]) | is_nan(constant_i[30:0]) |
                   (is_infinite(value_i[30:0]) & is_infinite(constant_i[30:0]) & (value_i[31] ^ constant_i[31]));
    infinite1_q <= is_infinite(value_i[30:0]) | is_infinite(constant_i[30:0]);
  end

  // Cycle 2: the greater and the lesser operand. A distance of 31 stands for all above.
  logic [23:0] greater2_q, lesser2_q, greater3_q;
  logic [7:0]  exponent2_q, exponent3_q, exponent4_q, exponent5_q;
  logic [4:0]  distance2_q;
  logic        negative2_q, subtract2_q, invalid2_q, infinite2_q;
  logic [30:0] greater, lesser;
  logic [7:0]  distance;
  assign greater  = swap_q ? constant_i[30:0] : value1_q[30:0];
  assign lesser   = swap_q ? value1_q[30:0] : constant_i[30:0];
  assign distance = swap_q ? behind1_q : ahead1_q;
  always_ff @(posedge clk_i) begin
    greater2_q  <= significand_of(greater);
    lesser2_q   <= significand_of(lesser);
    exponent2_q <= exponent_of(greater[30:23]);
    distance2_q <= distance > 8'd31 ? 5'd31 : distance[4:0];
    negative2_q <= swap_q ? constant_i[31] : value1_q[31];
    subtract2_q <= subtract1_q;
    invalid2_q  <= invalid1_q;
    infinite2_q <= infinite1_q;
  end

  // Cycle 3: the lesser operand beside the greater one, with two bits below and a third for all that lies lower.
  logic [54:0] moved;
  logic [26:0] aligned3_q;
  logic        negative3_q, subtract3_q, invalid3_q, infinite3_q;
  assign moved = {lesser2_q, 31'b0} >> distance2_q;
  always_ff @(posedge clk_i) begin
    aligned3_q  <= {moved[54:29], moved[28:0] != '0};
    greater3_q  <= greater2_q;
    exponent3_q <= exponent2_q;
    negative3_q <= negative2_q;
    subtract3_q <= subtract2_q;
    invalid3_q  <= invalid2_q;
    infinite3_q <= infinite2_q;
  end

  // Cycle 4: the sum of the magnitudes or their difference.
  logic [27:0] sum4_q, sum5_q;
  logic        negative4_q, invalid4_q, infinite4_q;
  always_ff @(posedge clk_i) begin
    sum4_q      <= subtract3_q ? {1'b0, greater3_q, 3'b0} - {1'b0, aligned3_q}
                               : {1'b0, greater3_q, 3'b0} + {1'b0, aligned3_q};
    exponent4_q <= exponent3_q;
    negative4_q <= negative3_q;
    invalid4_q  <= invalid3_q;
    infinite4_q <= infinite3_q;
  end

  // Cycle 5: the zeros before its first one.
  logic [4:0] zeros, zeros5_q;
  logic       negative5_q, invalid5_q, infinite5_q;
  leading_zeros u_zeros (.value_i({sum4_q, 4'b1000}), .count_o(zeros));
  always_ff @(posedge clk_i) begin
    zeros5_q    <= zeros;
    sum5_q      <= sum4_q;
    exponent5_q <= exponent4_q;
    negative5_q <= negative4_q;
    invalid5_q  <= invalid4_q;
    infinite5_q <= infinite4_q;
  end

  // Cycle 6: the sum with its first one at the top.
  logic [27:0]       normal6_q;
  logic signed [8:0] exponent6_q;
  logic              negative6_q, invalid6_q, infinite6_q, zero6_q;
  always_ff @(posedge clk_i) begin
    normal6_q   <= sum5_q << zeros5_q;
    exponent6_q <= $signed({1'b0, exponent5_q}) - 9'sd126 - $signed({4'b0, zeros5_q});
    negative6_q <= negative5_q;
    invalid6_q  <= invalid5_q;
    infinite6_q <= infinite5_q;
    zero6_q     <= zeros5_q == 5'd28;
  end

  // Cycle 7: rounding. Of a sum that float32 has as a subnormal number, all bits to be rounded are zeros.
  logic        up;
  logic [24:0] rounded;
  assign up      = normal6_q[3] & (normal6_q[4] | (normal6_q[2:0] != '0));
  assign rounded = {1'b0, normal6_q[27:4]} + 25'(up);
  always_ff @(posedge clk_i) begin
    fraction_o <= rounded[22:0];
    exponent_o <= exponent6_q + $signed({8'b0, rounded[24]});
    invalid_o  <= invalid6_q | (negative6_q & (infinite6_q | ~zero6_q));
    infinite_o <= infinite6_q | (exponent6_q + $signed({8'b0, rounded[24]}) > 9'sd127);
    zero_o     <= zero6_q;
  end
  logic unused_hidden;
  assign unused_hidden = rounded[23];
endmodule
