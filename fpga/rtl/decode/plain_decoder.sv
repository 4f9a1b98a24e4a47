// The unit plain_decoder: a section of Parquet's PLAIN encoding becomes its values, up to 4 a cycle.
//
// A value has 4 bytes or 8, little endian. It leaves in a lane of 64 bits: one of 8 bytes as it is, an INT32 with its
// sign in the upper half, an unsigned INT32 and a FLOAT with an upper half of 0. A section of no values makes one
// transfer without values. The section is damaged if its bytes end before its values; the last transfer tells, holds no
// values, and follows at once. What a section holds behind its last value is dropped.
module plain_decoder (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         register_write_i,
  input  logic [15:0]  register_address_i,
  input  logic [63:0]  register_data_i,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [262:0] in_data_i,  // {last, bytes, data}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [260:0] out_data_o  // {damaged, last, count, values}
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:32];

  logic        wide_q;    // a value has 8 bytes
  logic        signed_q;  // the upper half of a value of 4 bytes is its sign
  logic [31:0] count_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        plain_decoder_registers::Wide:   wide_q   <= register_data_i[0];
        plain_decoder_registers::Signed: signed_q <= register_data_i[0];
        plain_decoder_registers::Count:  count_q  <= register_data_i[31:0];
        default: ;
      endcase
    end
  end

  logic [255:0] window;
  logic [8:0]   available;
  logic         ended;
  logic [5:0]   take;
  logic         done;
  byte_queue u_queue (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .in_data_i(in_data_i[255:0]), .in_bytes_i(in_data_i[261:256]),
    .in_last_i(in_data_i[262]), .window_o(window), .available_o(available), .ended_o(ended), .take_i(take),
    .done_i(done)
  );

  // The next transfer of a section that has begun: its values, or its end without them.
  logic        running_q;
  logic [31:0] needed_q;   // values of the section
  logic        full;       // it needs 4 values or more
  logic        there, emit, last, admitted, issue;
  logic [2:0]  values;
  logic [5:0]  bytes;
  assign full   = needed_q[31:2] != '0;
  assign values = full ? 3'd4 : {1'b0, needed_q[1:0]};
  assign bytes  = wide_q ? {values, 3'b000} : {1'b0, values, 2'b00};
  assign there  = (available[8:6] != '0) | (bytes <= available[5:0]);
  assign last   = ~there | ~full | (needed_q == 32'd4);
  assign emit   = running_q & (there | ended);
  assign issue  = emit & admitted;
  assign done   = issue & last;
  assign take   = issue & ~last ? {wide_q, ~wide_q, 4'b0} : '0;  // the bytes of 4 values
  always_ff @(posedge clk_i) begin
    if (!rst_ni || done) running_q <= 1'b0;
    else running_q <= running_q | ended | (available != '0);
    if (!running_q) needed_q <= count_q;
    else if (issue) needed_q <= needed_q - 32'(values);
  end

  // Cycle 1: the window. Cycle 2: the lanes that count.
  logic [255:0] window_q, lanes_q;
  logic [2:0]   values1_q, values2_q;
  logic         last1_q, last2_q, damaged1_q, damaged2_q;
  always_ff @(posedge clk_i) begin
    window_q   <= window;
    values1_q  <= there ? values : '0;
    last1_q    <= last;
    damaged1_q <= ~there;
    values2_q  <= values1_q;
    last2_q    <= last1_q;
    damaged2_q <= damaged1_q;
  end
  for (genvar lane = 0; lane < 4; lane++) begin : gen_lane
    logic [31:0] narrow;
    logic [63:0] value;
    assign narrow = window_q[32*lane +: 32];
    assign value  = wide_q ? window_q[64*lane +: 64] : {{32{signed_q & narrow[31]}}, narrow};
    always_ff @(posedge clk_i) lanes_q[64*lane +: 64] <= 3'(lane) < values1_q ? value : '0;
  end

  stream_credit_pipe #(.Width(261), .Latency(2)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(emit), .in_ready_o(admitted), .result_i({damaged2_q, last2_q, values2_q, lanes_q}),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
