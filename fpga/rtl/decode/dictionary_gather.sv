// The unit dictionary_gather: dictionary indices become the values that the dictionary holds for them, up to 4 a cycle.
//
// The unit takes transfers as hybrid_decoder makes them, with up to 8 indices. One of more than 4 takes two cycles and
// makes two results; any other takes a cycle and makes one. Each of the 4 lanes has the dictionary in a memory of its
// own. The section is damaged if hybrid_decoder says so, or if an index is not below the dictionary's size; the last
// result tells, and what stands for such an index is 0.
module dictionary_gather #(
  parameter int unsigned IndexWidth = 14
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         register_write_i,
  input  logic [15:0]  register_address_i,
  input  logic [63:0]  register_data_i,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [261:0] in_data_i,  // {damaged, last, count, indices}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [260:0] out_data_o  // {damaged, last, count, values}
);
  localparam int unsigned Lanes = 4;

  logic [IndexWidth:0] size_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i && register_address_i == dictionary_gather_registers::Size) begin
      size_q <= register_data_i[IndexWidth:0];
    end
  end

  // A transfer of more than 4 indices is taken with its second half.
  logic       second_q;  // the first half was issued
  logic       halves;    // the transfer has two
  logic       admitted, issue;
  logic [3:0] count;
  logic [2:0] values;    // of this half
  assign count      = in_data_i[259:256];
  assign halves     = count > 4'd4;
  assign in_ready_o = admitted & (second_q | ~halves);
  assign issue      = in_valid_i & admitted;
  always_comb begin
    if (second_q) values = 3'(count - 4'd4);
    else if (halves) values = 3'd4;
    else values = count[2:0];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) second_q <= 1'b0;
    else if (issue) second_q <= halves & ~second_q;
  end

  // Cycle 1: the indices. Cycle 2: the dictionary. Cycle 3: a register behind the memory. Cycle 4: the lanes that
  // count, and whether the section is damaged so far.
  logic [2:0]   issued_q;                       // bit k: a half was issued k + 1 cycles ago
  logic [2:0]   values1_q, values2_q, values3_q;
  logic         last1_q, last2_q, last3_q;
  logic         faulty1_q, faulty2_q, faulty3_q;  // by the input
  logic [3:0]   above2_q, above3_q;
  logic         damaged, damaged_q;             // damaged_q: by an earlier result
  logic [255:0] lanes;
  logic [260:0] result_q;
  for (genvar lane = 0; lane < Lanes; lane++) begin : gen_lane
    (* ram_style = "ultra" *) logic [63:0] dictionary_q [2 ** IndexWidth];
    logic        write;
    assign write = register_write_i & (register_address_i[15:IndexWidth] == '0);

    logic [31:0] index_q;
    logic [63:0] entry_q, value_q;
    always_ff @(posedge clk_i) begin
      if (write) dictionary_q[register_address_i[IndexWidth-1:0]] <= register_data_i;
    end
    always_ff @(posedge clk_i) begin
      index_q        <= second_q ? in_data_i[32*(lane+Lanes) +: 32] : in_data_i[32*lane +: 32];
      entry_q        <= dictionary_q[index_q[IndexWidth-1:0]];
      above2_q[lane] <= (3'(lane) < values1_q) & (index_q >= 32'(size_q));
      value_q        <= entry_q;
    end
    assign lanes[64*lane +: 64] = (3'(lane) < values3_q) & ~above3_q[lane] ? value_q : '0;
  end
  assign damaged = damaged_q | faulty3_q | (above3_q != '0);
  always_ff @(posedge clk_i) begin
    issued_q  <= rst_ni ? {issued_q[1:0], issue} : '0;
    values1_q <= values;
    values2_q <= values1_q;
    values3_q <= values2_q;
    last1_q   <= in_data_i[260] & in_ready_o;
    last2_q   <= last1_q;
    last3_q   <= last2_q;
    faulty1_q <= in_data_i[261];
    faulty2_q <= faulty1_q;
    faulty3_q <= faulty2_q;
    above3_q  <= above2_q;
    result_q  <= {damaged, last3_q, values3_q, lanes};
    if (!rst_ni) damaged_q <= 1'b0;
    else if (issued_q[2]) damaged_q <= damaged & ~last3_q;
  end

  stream_credit_pipe #(.Width(261), .Latency(4)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o(admitted), .result_i(result_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );

`ifdef FORMAL
  // Shown by induction, for an input that keeps what it offers until it is taken: the pipeline gets one cycle for each
  // transfer, and one more for each of two halves, in their order, with all their indices; a section's last cycle, and
  // no other, is marked as its last.
  localparam int unsigned NumberWidth = 4;
  localparam int unsigned IndexNumberWidth = 6;

  logic [NumberWidth-1:0]      taken_q;    // transfers
  logic [NumberWidth-1:0]      two_q;      // those of two halves
  logic [NumberWidth-1:0]      given_q;    // cycles that the pipeline got
  logic [NumberWidth-1:0]      ended_q;    // last transfers
  logic [NumberWidth-1:0]      marked_q;   // results that are marked
  logic [IndexNumberWidth-1:0] offered_q;  // indices of the transfers that were taken
  logic [IndexNumberWidth-1:0] counted_q;  // indices of the cycles
  logic                        taken, marked, issued4_q;
  logic                        waited_q;   // a second half had to wait
  logic                        kept_q;     // what was offered was not taken
  logic [5:0]                  offer_q;
  logic                        past_q;
  assign taken  = in_valid_i & in_ready_o;
  assign marked = issued4_q & result_q[259];
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    assume (count <= 4'd8);
    kept_q  <= rst_ni & in_valid_i & ~in_ready_o;
    offer_q <= in_data_i[261:256];
    if (kept_q) assume (in_valid_i && in_data_i[261:256] == offer_q);
    taken_q   <= rst_ni ? taken_q + NumberWidth'(taken) : '0;
    two_q     <= rst_ni ? two_q + NumberWidth'(taken & halves) : '0;
    given_q   <= rst_ni ? given_q + NumberWidth'(issue) : '0;
    ended_q   <= rst_ni ? ended_q + NumberWidth'(taken & in_data_i[260]) : '0;
    marked_q  <= rst_ni ? marked_q + NumberWidth'(marked) : '0;
    offered_q <= rst_ni ? offered_q + (taken ? IndexNumberWidth'(count) : '0) : '0;
    counted_q <= rst_ni ? counted_q + (issue ? IndexNumberWidth'(values) : '0) : '0;
    issued4_q <= rst_ni & issued_q[2];
    waited_q  <= rst_ni & (waited_q | (second_q & ~admitted));
    if (past_q && rst_ni) begin
      assert (given_q == taken_q + two_q + NumberWidth'(second_q));
      assert (counted_q == offered_q + (second_q ? IndexNumberWidth'(4) : '0));
      if (second_q) assert (kept_q && offer_q[3:0] > 4'd4);
      assert (ended_q == marked_q + NumberWidth'(issued_q[0] & last1_q) + NumberWidth'(issued_q[1] & last2_q) +
                         NumberWidth'(issued_q[2] & last3_q) + NumberWidth'(marked));
      // The proof is not empty: a second half waited, and another section of two halves followed.
      cover (waited_q && marked_q == NumberWidth'(2) && two_q == NumberWidth'(2));
    end
  end
`endif
endmodule
