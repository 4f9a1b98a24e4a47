// The unit sigrid_hash: an id becomes a row of an embedding table (TorchArrow's sigrid_hash over two functions of
// folly). The hash is hash_128_to_64(salt, twang_mix64(id)); the row is its remainder, rounded towards minus infinity.
module sigrid_hash (
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
  output logic [63:0] out_data_o
);
  logic [63:0] salt_q;
  logic [31:0] divisor_q;
  logic [63:0] reciprocal_q;
  logic [5:0]  shift_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        sigrid_hash_registers::Salt:       salt_q       <= register_data_i;
        sigrid_hash_registers::Divisor:    divisor_q    <= register_data_i[31:0];
        sigrid_hash_registers::Reciprocal: reciprocal_q <= register_data_i;
        sigrid_hash_registers::Shift:      shift_q      <= register_data_i[5:0];
        default: ;
      endcase
    end
  end

  // Cycles 1 to 7: twang_mix64, a step a cycle.
  logic [63:0] step1_q, step2_q, step3_q, step4_q, step5_q, step6_q, step7_q;
  always_ff @(posedge clk_i) begin
    step1_q <= ~in_data_i + (in_data_i << 21);
    step2_q <= step1_q ^ (step1_q >> 24);
    step3_q <= step2_q + (step2_q << 3) + (step2_q << 8);
    step4_q <= step3_q ^ (step3_q >> 14);
    step5_q <= step4_q + (step4_q << 2) + (step4_q << 4);
    step6_q <= step5_q ^ (step5_q >> 28);
    step7_q <= step6_q + (step6_q << 31);
  end

  // Cycles 8 to 13, 14 to 19 and 20 to 25: the three products of hash_128_to_64.
  localparam logic [63:0] Factor = 64'h9ddfea08eb382d69;
  logic [63:0] product1, product2, product3;
  multiplier u_product1 (.clk_i, .a_i(step7_q ^ salt_q), .b_i(Factor), .product_o(product1));
  multiplier u_product2 (
    .clk_i, .a_i(salt_q ^ product1 ^ (product1 >> 47)), .b_i(Factor), .product_o(product2)
  );
  multiplier u_product3 (.clk_i, .a_i(product2 ^ (product2 >> 47)), .b_i(Factor), .product_o(product3));

  // Cycles 26 to 39.
  logic [31:0] remainder;
  floor_modulus u_modulus (
    .clk_i, .reciprocal_i(reciprocal_q), .shift_i(shift_q), .divisor_i(divisor_q),
    .value_i(product3), .remainder_o(remainder)
  );

  stream_credit_pipe #(.Width(32), .Latency(39)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(remainder),
    .out_valid_o, .out_ready_i, .out_data_o(out_data_o[31:0])
  );
  assign out_data_o[63:32] = '0;
endmodule
