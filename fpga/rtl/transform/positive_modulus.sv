// The unit positive_modulus: an id becomes its remainder, which is never negative.
module positive_modulus (
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
  logic [31:0] divisor_q;
  logic [63:0] reciprocal_q;
  logic [5:0]  shift_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        positive_modulus_registers::Divisor:    divisor_q    <= register_data_i[31:0];
        positive_modulus_registers::Reciprocal: reciprocal_q <= register_data_i;
        positive_modulus_registers::Shift:      shift_q      <= register_data_i[5:0];
        default: ;
      endcase
    end
  end

  logic [31:0] remainder;
  floor_modulus u_modulus (
    .clk_i, .reciprocal_i(reciprocal_q), .shift_i(shift_q), .divisor_i(divisor_q),
    .value_i(in_data_i), .remainder_o(remainder)
  );

  stream_credit_pipe #(.Width(32), .Latency(14)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(remainder),
    .out_valid_o, .out_ready_i, .out_data_o(out_data_o[31:0])
  );
  assign out_data_o[63:32] = '0;
endmodule
