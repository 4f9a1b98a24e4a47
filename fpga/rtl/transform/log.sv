// The unit log: a float32 becomes the float32 nearest to the natural logarithm of the sum with a constant, which is
// rounded to float32 itself. The logarithm of a NaN and of a number below zero is the NaN 7fc00000h, that of a zero of
// either sign minus infinity.
module log (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [31:0] in_data_i,

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [31:0] out_data_o
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:32];

  logic [31:0] addend_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i && register_address_i == log_registers::Addend) addend_q <= register_data_i[31:0];
  end

  // Cycles 1 to 7.
  logic              invalid, infinite, zero;
  logic signed [8:0] exponent;
  logic [22:0]       fraction;
  float_sum u_sum (
    .clk_i, .constant_i(addend_q), .value_i(in_data_i), .invalid_o(invalid), .infinite_o(infinite), .zero_o(zero),
    .exponent_o(exponent), .fraction_o(fraction)
  );

  // Cycles 8 to 28.
  logic [31:0] logarithm;
  natural_logarithm u_logarithm (
    .clk_i, .invalid_i(invalid), .infinite_i(infinite), .zero_i(zero), .exponent_i(exponent), .fraction_i(fraction),
    .logarithm_o(logarithm)
  );

  stream_credit_pipe #(.Width(32), .Latency(28)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(logarithm),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
