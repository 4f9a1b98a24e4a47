// The unit hybrid_decoder: a section of Parquet's RLE / bit-packed hybrid (levels, booleans, dictionary indices)
// becomes its values, up to 8 a cycle.
//
// A transfer holds 1 to 8 values of one run. A run takes a cycle for its header and one for each transfer, or one if it
// has no values. A section of no values makes one transfer without values. The section is damaged if its runs end
// before its values, if the header of a run says more than 32 bits can, or if a value is above the limit. The last
// transfer tells; where the runs are at fault it holds no values and follows at once. What a section holds behind its
// last value is dropped.
//
// Eight values of one width are as many bytes as the width has bits, so a packed run never leaves the byte's edge.
module hybrid_decoder (
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
  output logic [261:0] out_data_o  // {damaged, last, count, values}
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:32];

  logic [5:0]  width_q;
  logic [31:0] limit_q;
  logic [31:0] count_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        hybrid_decoder_registers::Width: width_q <= register_data_i[5:0];
        hybrid_decoder_registers::Limit: limit_q <= register_data_i[31:0];
        hybrid_decoder_registers::Count: count_q <= register_data_i[31:0];
        default: ;
      endcase
    end
  end
  logic [2:0] value_bytes_q;  // of the value of a run that repeats it
  always_ff @(posedge clk_i) value_bytes_q <= 3'((width_q + 6'd7) >> 3);

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

  logic some, many;  // 8 bytes are there, 64
  assign some = available[8:3] != '0;
  assign many = available[8:6] != '0;

  typedef enum logic [1:0] {Idle, Header, Run} state_e;
  state_e      state_q;
  logic        packed_q;
  logic [30:0] left_q;    // of the run: groups of 8 values, or values
  logic [31:0] needed_q;  // values of the section

  // The header: up to 5 bytes of 7 bits, the lowest first. It is good if it came and fits 32 bits.
  logic [3:0]  stops;  // bytes that end the header, if they are there; else the fifth does
  logic [4:0]  come;   // bytes that are there
  logic        header_good, header_wrong;
  logic [2:0]  header_bytes;
  logic [31:0] header;
  assign stops = {~window[31], ~window[23], ~window[15], ~window[7]};
  for (genvar place = 0; place < 5; place++) begin : gen_come
    assign come[place] = some | (available[2:0] > 3'(place));
  end
  // Where a byte is there, the bytes before it are, too. So it does not matter which byte is the first that stops.
  assign header_good  = ((stops & come[3:0]) != '0) | (come[4] & (window[39:36] == '0));
  assign header_wrong = ~header_good & (ended | come[4]);
  always_comb begin
    if (stops[0]) header_bytes = 3'd1;
    else if (stops[1]) header_bytes = 3'd2;
    else if (stops[2]) header_bytes = 3'd3;
    else if (stops[3]) header_bytes = 3'd4;
    else header_bytes = 3'd5;
  end
  assign header = {
    (header_bytes == 3'd5) ? window[35:32] : 4'b0,
    (header_bytes >= 3'd4) ? window[30:24] : 7'b0,
    (header_bytes >= 3'd3) ? window[22:16] : 7'b0,
    (header_bytes >= 3'd2) ? window[14:8] : 7'b0,
    window[6:0]
  };

  // The next transfer of a run.
  logic       run_some;       // the run holds values
  logic       run_full;       // the run holds 8 values
  logic       run_ends;       // behind this transfer
  logic       section_full;   // the section needs 8 values
  logic       section_ends;
  logic [3:0] run_values, values;
  assign run_some     = left_q != '0;
  assign run_full     = (left_q[30:3] != '0) | (packed_q & run_some);
  assign run_values   = run_full ? 4'd8 : {1'b0, left_q[2:0]};
  assign run_ends     = packed_q ? (left_q[30:1] == '0) : (left_q[30:3] == '0 || left_q == 31'd8);
  assign section_full = needed_q[31:3] != '0;
  assign section_ends = section_full ? (run_full && needed_q == 32'd8) : (run_full || needed_q[2:0] <= left_q[2:0]);
  assign values       = (section_ends && !section_full) ? {1'b0, needed_q[2:0]} : run_values;

  // The bytes of the up to 7 values that the section needs last, a cycle late. Their number changes only in the cycle
  // before a header, so the run behind the header has the right one.
  logic [7:0] last_bits;
  logic [5:0] last_bytes_q;
  assign last_bits = (needed_q[2] ? {width_q, 2'b00} : 8'd0) + (needed_q[1] ? {1'b0, width_q, 1'b0} : 8'd0) +
                     (needed_q[0] ? {2'b00, width_q} : 8'd0);
  always_ff @(posedge clk_i) last_bytes_q <= 6'((last_bits + 8'd7) >> 3);

  logic begun, run_there;
  assign begun = ended | (available != '0);
  always_comb begin
    if (!packed_q) run_there = some | (value_bytes_q <= available[2:0]);
    else if (!run_some) run_there = 1'b1;
    else if (section_full) run_there = many | (width_q <= available[5:0]);
    else run_there = many | (last_bytes_q <= available[5:0]);
  end

  // What leaves: values, or the end of a section without values or with faulty runs. It goes to registers, where it
  // waits for a credit, so that the credits are no part of the long paths of this cycle. proceed: they are free.
  logic emit, emit_last, emit_wrong, waits_q, admitted, proceed;
  logic [3:0] emit_values;
  assign proceed = ~waits_q | admitted;
  always_comb begin
    emit        = 1'b0;
    emit_last   = 1'b1;
    emit_wrong  = 1'b0;
    emit_values = '0;
    case (state_q)
      Idle: emit = begun & (count_q == '0);
      Header: begin
        emit       = header_wrong;
        emit_wrong = 1'b1;
      end
      Run: begin
        if (!run_there) begin
          emit       = ended;
          emit_wrong = 1'b1;
        end else begin
          emit        = run_some;
          emit_last   = section_ends;
          emit_values = values;
        end
      end
      default: ;
    endcase
  end
  assign done = emit & emit_last & proceed;

  logic run_goes_on;  // this cycle deals with the run: it leaves values, or it has none
  assign run_goes_on = (state_q == Run) & run_there & proceed;
  always_comb begin
    take = '0;
    if (state_q == Header && header_good) take = {3'b0, header_bytes};
    else if (run_goes_on && packed_q && run_some && section_full) take = width_q;
    else if (run_goes_on && !packed_q && run_ends) take = {3'b0, value_bytes_q};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || done) begin
      state_q <= Idle;
    end else begin
      case (state_q)
        Idle: if (begun && !emit) state_q <= Header;
        Header: if (header_good) state_q <= Run;
        Run: if (run_goes_on && run_ends) state_q <= Header;
        default: state_q <= Idle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == Idle) needed_q <= count_q;
    else if (run_goes_on) needed_q <= needed_q - 32'(run_values);
    if (state_q == Header) begin
      packed_q <= header[0];
      left_q   <= header[31:1];
    end else if (run_goes_on) begin
      left_q <= left_q - (packed_q ? 31'd1 : 31'd8);  // of no meaning behind the run
    end
  end

  // What goes along with the values: while they wait for a credit, and by cycles after the issue.
  localparam int unsigned TagWidth = 4 + 1 + 1 + 1;
  logic [5*TagWidth-1:0] tags_q;    // {wrong, last, repeated, values}
  logic [3:0]            issued_q;
  logic [255:0]          window_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) waits_q <= 1'b0;
    else if (proceed) waits_q <= emit;
    if (proceed) begin
      tags_q[TagWidth-1:0] <= {emit_wrong, emit_last, ~packed_q, emit_values};
      window_q             <= window;
    end
    tags_q[5*TagWidth-1:TagWidth] <= tags_q[4*TagWidth-1:0];
    issued_q                      <= rst_ni ? {issued_q[2:0], waits_q & admitted} : '0;
  end

  // Cycles 1 to 3: the halves of the window, quarters and eighths, which begin 4, 2 and 1 widths behind one another, or
  // where a value repeats at the same place. Cycle 4: the lanes that count, and whether one is above the limit.
  logic [255:0] halves_q, quarters_q, eighths_q, lanes_q;
  logic [5:0]   width1, width2, width3;
  assign width1 = tags_q[0*TagWidth+4] ? '0 : width_q;
  assign width2 = tags_q[1*TagWidth+4] ? '0 : width_q;
  assign width3 = tags_q[2*TagWidth+4] ? '0 : width_q;
  logic [31:0] mask, mask_q;
  assign mask = tags_q[2*TagWidth+4] ? 32'((33'd1 << {value_bytes_q, 3'b000}) - 33'd1)
                                     : 32'((33'd1 << width_q) - 33'd1);
  always_ff @(posedge clk_i) begin
    halves_q <= {128'(window_q >> {width1, 2'b00}), window_q[127:0]};
    mask_q   <= mask;
  end
  for (genvar half = 0; half < 2; half++) begin : gen_half
    always_ff @(posedge clk_i) begin
      quarters_q[128*half +: 128] <= {64'(halves_q[128*half +: 128] >> {width2, 1'b0}), halves_q[128*half +: 64]};
    end
  end
  for (genvar quarter = 0; quarter < 4; quarter++) begin : gen_quarter
    always_ff @(posedge clk_i) begin
      eighths_q[64*quarter +: 64] <= {32'(quarters_q[64*quarter +: 64] >> width3), quarters_q[64*quarter +: 32]};
    end
  end
  logic [7:0] above_q;
  for (genvar lane = 0; lane < 8; lane++) begin : gen_lane
    logic        counts;
    logic [31:0] value;
    assign counts = 4'(lane) < tags_q[3*TagWidth +: 4];
    assign value  = counts ? eighths_q[32*lane +: 32] & mask_q : '0;
    always_ff @(posedge clk_i) begin
      lanes_q[32*lane +: 32] <= value;
      above_q[lane]          <= value > limit_q;
    end
  end

  // Cycle 5: whether the section is damaged so far.
  logic         damaged, damaged_q;  // damaged_q: by an earlier transfer
  logic [261:0] result_q;
  assign damaged = damaged_q | (above_q != '0) | tags_q[4*TagWidth+6];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) damaged_q <= 1'b0;
    else if (issued_q[3]) damaged_q <= damaged & ~tags_q[4*TagWidth+5];
    result_q <= {damaged, tags_q[4*TagWidth+5], tags_q[4*TagWidth +: 4], lanes_q};
  end

  stream_credit_pipe #(.Width(262), .Latency(5)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(waits_q), .in_ready_o(admitted), .result_i(result_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
