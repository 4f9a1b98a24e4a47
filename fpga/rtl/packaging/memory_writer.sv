// Writes the results of a run to memory by AXI4, one a beat, in bursts of 16; the last burst has what is left.
//
// Results behind the room are dropped and counted, so that nothing is written behind the host's buffer. Bursts do not
// cross 4096 bytes, as in memory_reader.
module memory_writer #(
  parameter int unsigned Width = 64  // bits of a beat: 64 to 1024, a power of two
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             start_i,
  input  logic [63:0]      address_i,
  input  logic [31:0]      room_i,      // results
  input  logic             ended_i,     // no result is still to come
  output logic             busy_o,      // results are not in memory yet
  output logic [31:0]      results_o,   // of the run, those that were dropped included
  output logic             overflow_o,  // results were dropped
  output logic             fault_o,     // the memory answered a write of the run with an error

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  output logic             awvalid_o,
  input  logic             awready_i,
  output logic [63:0]      awaddr_o,
  output logic [7:0]       awlen_o,
  output logic             wvalid_o,
  input  logic             wready_i,
  output logic [Width-1:0] wdata_o,
  output logic             wlast_o,
  input  logic             bvalid_i,
  output logic             bready_o,
  input  logic [1:0]       bresp_i
);
  localparam int unsigned BurstBytes = 16 * Width / 8;

  logic [Width-1:0] fifo_q [32];
  logic [4:0]       write_q, read_q;
  logic [5:0]       held_q;     // results in the FIFO
  logic [5:0]       unasked_q;  // of these, those that no burst has asked for
  logic [5:0]       asked_q;    // and those whose burst the memory has taken the address of
  logic [3:0]       sent_q;     // beats of the burst that have left
  logic [3:0]       open_q;     // bursts without an answer
  logic [63:0]      next_q;     // the address of the next burst

  logic       come, push, pop, begins, taken, answered, full, rest;
  logic [4:0] beats;
  assign ready_o  = ~held_q[5];
  assign come     = valid_i & ready_o;
  assign push     = come & (results_o < room_i);
  assign full     = unasked_q[5:4] != '0;
  assign beats    = full ? 5'd16 : {1'b0, unasked_q[3:0]};
  assign begins   = ~awvalid_o & (open_q != 4'hf) & (full | (ended_i & (unasked_q != '0)));
  assign taken    = awvalid_o & awready_i;
  assign rest     = ended_i & (unasked_q == '0) & ~awvalid_o & (asked_q == 6'd1);  // the run's last beat
  assign wvalid_o = asked_q != '0;
  assign wlast_o  = (sent_q == 4'hf) | rest;
  assign wdata_o  = fifo_q[read_q];
  assign pop      = wvalid_o & wready_i;
  assign bready_o = 1'b1;
  assign answered = bvalid_i & bready_o;
  assign busy_o   = (held_q != '0) | (open_q != '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      awvalid_o <= 1'b0;
      write_q   <= '0;
      read_q    <= '0;
      held_q    <= '0;
      unasked_q <= '0;
      asked_q   <= '0;
      sent_q    <= '0;
      open_q    <= '0;
    end else begin
      awvalid_o <= begins | (awvalid_o & ~awready_i);
      write_q   <= write_q + 5'(push);
      read_q    <= read_q + 5'(pop);
      held_q    <= held_q + 6'(push) - 6'(pop);
      unasked_q <= unasked_q + 6'(push) - (begins ? 6'(beats) : 6'd0);
      asked_q   <= asked_q + (taken ? 6'(awlen_o[4:0]) + 6'd1 : 6'd0) - 6'(pop);
      sent_q    <= wlast_o & pop ? 4'd0 : sent_q + 4'(pop);
      open_q    <= open_q + 4'(begins) - 4'(answered);
    end
  end
  always_ff @(posedge clk_i) begin
    if (push) fifo_q[write_q] <= data_i;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      next_q     <= address_i;
      results_o  <= '0;
      overflow_o <= 1'b0;
      fault_o    <= 1'b0;
    end else begin
      if (begins) begin
        next_q   <= next_q + 64'(BurstBytes);
        awaddr_o <= next_q;
        awlen_o  <= 8'(beats) - 8'd1;
      end
      results_o  <= results_o + 32'(come);
      overflow_o <= overflow_o | (come & ~push);
      fault_o    <= fault_o | (answered & bresp_i[1]);
    end
  end

  logic unused_resp;
  assign unused_resp = bresp_i[0];
endmodule
