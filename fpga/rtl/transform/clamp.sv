// The unit clamp: a value below the least becomes the least, a value above the greatest the greatest.
//
// The kind register says whether values are int64 or float32 (in the low 32 bits, with the high bits 0). Floats are
// compared as IEEE 754 does: -0 equals +0, and a NaN is neither below nor above anything, so that it stays.
module clamp (
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
  logic        float_q;
  logic [63:0] least_q;
  logic [63:0] greatest_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        clamp_registers::Float:    float_q    <= register_data_i[0];
        clamp_registers::Least:    least_q    <= register_data_i;
        clamp_registers::Greatest: greatest_q <= register_data_i;
        default: ;
      endcase
    end
  end

  // An unsigned number whose order is the value's: the sign is inverted, and a negative float's other bits, too.
  // Both zeros of float32 have the same number.
  function automatic logic [63:0] order_of(input logic is_float, input logic [63:0] value);
    if (!is_float) order_of = value ^ 64'h8000_0000_0000_0000;
    else if (value[30:0] == '0) order_of = 64'h8000_0000;
    else if (value[31]) order_of = {32'b0, ~value[31:0]};
    else order_of = {32'b0, value[31:0] ^ 32'h8000_0000};
  endfunction

  // Cycle 1: the orders. Cycle 2: the comparisons. Cycle 3: the choice.
  logic [63:0] value1_q, order1_q, least_order_q, greatest_order_q, value2_q, chosen_q;
  logic        nan1_q, below_q, above_q;
  always_ff @(posedge clk_i) begin
    least_order_q    <= order_of(float_q, least_q);
    greatest_order_q <= order_of(float_q, greatest_q);

    value1_q <= in_data_i;
    order1_q <= order_of(float_q, in_data_i);
    nan1_q   <= float_q & (in_data_i[30:23] == 8'hff) & (in_data_i[22:0] != '0);

    value2_q <= value1_q;
    below_q  <= ~nan1_q & (order1_q < least_order_q);
    above_q  <= ~nan1_q & (order1_q > greatest_order_q);

    chosen_q <= below_q ? least_q : (above_q ? greatest_q : value2_q);
  end

  stream_credit_pipe #(.Width(64), .Latency(3)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(chosen_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
