// The unit fill_null: a value that is absent becomes the fill. It does not look at the value, so it takes every kind.
module fill_null (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [64:0] in_data_i,  // {present, value}

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [63:0] out_data_o
);
  logic [63:0] fill_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i && register_address_i == fill_null_registers::Fill) fill_q <= register_data_i;
  end

  logic [63:0] filled_q;
  always_ff @(posedge clk_i) filled_q <= in_data_i[64] ? in_data_i[63:0] : fill_q;

  stream_credit_pipe #(.Width(64), .Latency(1)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(filled_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
