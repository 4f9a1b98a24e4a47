// The unit int_to_float: an int64 becomes the nearest float32, ties to even.
module int_to_float (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [63:0] in_data_i,

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [31:0] out_data_o
);
  // Every unit has the ports of registers; this one has nothing to write.
  logic unused_registers;
  assign unused_registers = ^{register_write_i, register_address_i, register_data_i};

  // Cycle 1: sign and magnitude. The magnitude of the least int64, 2^63, fits.
  logic        negative1_q;
  logic [63:0] magnitude1_q;
  always_ff @(posedge clk_i) begin
    negative1_q  <= in_data_i[63];
    magnitude1_q <= in_data_i[63] ? ~in_data_i + 64'd1 : in_data_i;
  end

  // Cycle 2: the magnitude without the high half, if that half is zero, and the zeros before the first one of what is
  // left. The second count is 31 where there is no one, which cycle 4 does not look at.
  logic        high_zero;
  logic [31:0] high_part;
  logic [4:0]  zeros;
  assign high_zero = magnitude1_q[63:32] == '0;
  assign high_part = high_zero ? magnitude1_q[31:0] : magnitude1_q[63:32];
  leading_zeros u_zeros (.value_i(high_part), .count_o(zeros));
  logic        negative2_q, zero2_q, high_zero2_q;
  logic [63:0] magnitude2_q;
  logic [4:0]  zeros2_q;
  always_ff @(posedge clk_i) begin
    negative2_q  <= negative1_q;
    zero2_q      <= magnitude1_q == '0;
    high_zero2_q <= high_zero;
    magnitude2_q <= high_zero ? {magnitude1_q[31:0], 32'b0} : magnitude1_q;
    zeros2_q     <= zeros;
  end

  // Cycle 3: the first one is moved to bit 63. 24 bits are kept, the next one decides, and those behind it say whether
  // the value lies between. The exponent is that of bit 63, 127 + 63, less the zeros.
  logic [63:0] normal;
  assign normal = magnitude2_q << zeros2_q;
  logic        negative3_q, zero3_q, up3_q;
  logic [7:0]  exponent3_q;
  logic [22:0] fraction3_q;
  always_ff @(posedge clk_i) begin
    negative3_q <= negative2_q;
    zero3_q     <= zero2_q;
    exponent3_q <= 8'd190 - {2'b0, high_zero2_q, zeros2_q};
    fraction3_q <= normal[62:40];
    up3_q       <= normal[39] & (normal[40] | (normal[38:0] != '0));
  end
  logic unused_first;
  assign unused_first = normal[63];  // 1, which a float32 leaves out

  // Cycle 4: the rounding, whose carry goes on into the exponent.
  logic [31:0] rounded_q;
  always_ff @(posedge clk_i) begin
    rounded_q <= zero3_q ? '0 : {negative3_q, {exponent3_q, fraction3_q} + {30'b0, up3_q}};
  end

  stream_credit_pipe #(.Width(32), .Latency(4)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(rounded_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
