// The elastic wrapper around a datapath of fixed latency.
//
// The datapath has no clock enable and cannot stall. The wrapper admits a value only if the output FIFO is sure to have
// room for its result: every admitted value takes a credit, and a value that leaves the FIFO gives the credit back.
// No path leads from out_ready_i to in_ready_o.
//
// Contract: the datapath takes its operands in the cycle in which in_valid_i and in_ready_o are 1, and its result is
// at result_i exactly Latency cycles later. What it computes in other cycles is never read. The wrapper adds one cycle,
// so that a value leaves Latency + 1 cycles after it was admitted. The initiation interval is 1 while the output is
// taken at once.
module stream_credit_pipe #(
  parameter int unsigned Width   = 64,
  parameter int unsigned Latency = 1,
  // Latency + 2 values are under way in steady state: in the datapath, in the FIFO, and as a credit coming back.
  localparam int unsigned PointerWidth = $clog2(Latency + 2),
  localparam int unsigned Depth        = 2 ** PointerWidth
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  output logic             in_ready_o,

  input  logic [Width-1:0] result_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);
  logic [PointerWidth:0]   credit_q;
  logic [Latency-1:0]      under_way_q;  // bit k: a value was admitted k + 1 cycles ago
  logic [PointerWidth-1:0] write_q;
  logic [PointerWidth-1:0] read_q;
  logic [PointerWidth:0]   held_q;       // values in the FIFO
  logic [Width-1:0]        fifo_q [Depth];

  logic issue;
  logic push;
  logic pop;

  assign in_ready_o  = credit_q != '0;
  assign issue     = in_valid_i & in_ready_o;
  assign push        = under_way_q[Latency-1];
  assign out_valid_o = held_q != '0;
  assign pop         = out_valid_o & out_ready_i;
  assign out_data_o  = fifo_q[read_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      credit_q    <= (PointerWidth + 1)'(Depth);
      under_way_q <= '0;
      write_q     <= '0;
      read_q      <= '0;
      held_q      <= '0;
    end else begin
      credit_q    <= credit_q - (PointerWidth + 1)'(issue) + (PointerWidth + 1)'(pop);
      under_way_q <= Latency'({under_way_q, issue});
      write_q     <= write_q + PointerWidth'(push);
      read_q      <= read_q + PointerWidth'(pop);
      held_q      <= held_q + (PointerWidth + 1)'(push) - (PointerWidth + 1)'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) fifo_q[write_q] <= result_i;
  end

`ifdef FORMAL
  // Shown by induction, whatever the sides do: every credit is at exactly one place, the FIFO never takes a value
  // without room, results leave in the order in which they came, none twice, and a result that waits stays as it is.
  localparam int unsigned NumberWidth = PointerWidth + 2;

  logic [NumberWidth-1:0] under_way;
  always_comb begin
    under_way = '0;
    for (int unsigned k = 0; k < Latency; k++) under_way = under_way + NumberWidth'(under_way_q[k]);
  end

  // Results are numbered as they enter the FIFO; number_q holds the numbers beside the results.
  logic [NumberWidth-1:0] number_q [Depth];
  logic [NumberWidth-1:0] entered_q;
  logic [NumberWidth-1:0] left_q;
  logic                   waited_q;
  logic [Width-1:0]       waiting_q;
  logic                   stopped_q;
  logic                   past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    if (push) number_q[write_q] <= entered_q;
    entered_q <= rst_ni ? entered_q + NumberWidth'(push) : '0;
    left_q    <= rst_ni ? left_q + NumberWidth'(pop) : '0;
    waited_q  <= rst_ni & out_valid_o & ~out_ready_i;
    waiting_q <= out_data_o;
    stopped_q <= rst_ni & (stopped_q | ~in_ready_o);
    if (past_q && rst_ni) begin
      assert (NumberWidth'(credit_q) + under_way + NumberWidth'(held_q) == NumberWidth'(Depth));
      assert (PointerWidth'(write_q - read_q) == PointerWidth'(held_q));
      assert (held_q <= (PointerWidth + 1)'(Depth));
      if (push) assert (held_q < (PointerWidth + 1)'(Depth));
      assert (entered_q - left_q == NumberWidth'(held_q));
      if (waited_q) assert (out_valid_o && out_data_o == waiting_q);
      // The proof is not empty: the input is stopped by a full FIFO, and goes on.
      cover (stopped_q && in_ready_o && left_q == NumberWidth'(Depth + 1));
    end
  end
  for (genvar place = 0; place < Depth; place++) begin : gen_order
    logic [PointerWidth-1:0] address;
    assign address = read_q + PointerWidth'(place);
    always_ff @(posedge clk_i) begin
      if (past_q && rst_ni && (PointerWidth + 1)'(place) < held_q) begin
        assert (number_q[address] == left_q + NumberWidth'(place));
      end
    end
  end
`endif
endmodule
