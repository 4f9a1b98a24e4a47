// Writes the results of a run to memory by AXI4, one a beat, in bursts of 16; the last burst has what is left.
//
// Results behind the room, and those that come when none is awaited, are dropped and counted, so that nothing is
// written behind the host's buffer. Bursts do not cross 4096 bytes, as in memory_reader. The beats of a burst do not
// wait until the memory has taken its address, since a memory may wait for a beat before it takes the address.
module memory_writer #(
  parameter int unsigned Width = 64  // bits of a beat: 64 to 1024, a power of two
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             start_i,
  input  logic [63:0]      address_i,
  input  logic [31:0]      room_i,      // results
  input  logic             ended_i,     // no result is awaited
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
  logic [5:0]       asked_q;    // and those of a burst
  logic [3:0]       sent_q;     // beats of the burst that have left
  logic [3:0]       open_q;     // bursts without an answer
  logic [63:0]      next_q;     // the address of the next burst

  logic       come, push, pop, begins, answered, full;
  logic [4:0] beats;
  assign ready_o  = ~held_q[5];
  assign come     = valid_i & ready_o;
  assign push     = come & ~ended_i & ~overflow_o & (results_o < room_i);
  assign full     = unasked_q[5:4] != '0;
  assign beats    = full ? 5'd16 : {1'b0, unasked_q[3:0]};
  assign begins   = ~awvalid_o & (open_q != 4'hf) & (full | (ended_i & (unasked_q != '0)));
  assign wvalid_o = asked_q != '0;
  assign wlast_o  = (sent_q == 4'hf) | (asked_q == 6'd1);
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
      asked_q   <= asked_q + (begins ? 6'(beats) : 6'd0) - 6'(pop);
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

`ifdef FORMAL
  // Shown by induction, whatever the unit does, if the memory answers no burst before it has taken its address and its
  // last beat: an address stays as it is until it is taken; no burst crosses 4096 bytes or the end of the room; bursts
  // lie behind one another from the run's address on; every burst has as many beats as its address says, and the mark
  // is at the last one; a burst's beats are offered whether its address is taken or not; results leave in their order;
  // up to 15 bursts are open; and as long as results are not in memory, this module or the memory has something to do.
  // The shell keeps what is assumed of it, which its own proof shows with FORMAL_SHELL.
  //
  // Results are numbered modulo 256. The newest with the number tracked_q, any number, is followed through the FIFO.
`ifdef FORMAL_SHELL
  `define OF_SHELL assert
`else
  `define OF_SHELL assume
`endif
  logic        past_q;
  logic        run_q;                       // a run has begun since the reset
  logic        ended_q;
  logic [31:0] run_room_q;
  logic        taken, last;
  logic [3:0]  taken_q;                     // bursts without an answer whose address was taken
  logic [3:0]  written_q;                   // bursts without an answer whose last beat was taken
  assign taken = awvalid_o & awready_i;
  assign last  = pop & wlast_o;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q    <= 1'b1;
    run_q     <= rst_ni & (run_q | start_i);
    ended_q   <= rst_ni & ended_i & ~start_i;
    if (start_i) run_room_q <= room_i;
    taken_q   <= !rst_ni ? '0 : taken_q + 4'(taken) - 4'(answered);
    written_q <= !rst_ni ? '0 : written_q + 4'(last) - 4'(answered);
    if (!past_q) `OF_SHELL (!rst_ni);
    if (past_q && rst_ni) begin
      assume (!bvalid_i || (taken_q != '0 && written_q != '0));
      if (start_i) `OF_SHELL (!busy_o && address_i[11:0] == '0);
      if (start_i || ended_q || !run_q) `OF_SHELL (ended_i);
      if (!ended_i) `OF_SHELL (room_i == run_room_q);
      assert (held_q <= 6'd32 && 7'(held_q) == 7'(asked_q) + 7'(unasked_q));
      assert (open_q == taken_q + 4'(awvalid_o) && 5'(taken_q) + 5'(awvalid_o) <= 5'd15);
    end
  end
`ifndef FORMAL_SHELL
  logic        waited_q, beat_waited_q, mark_q, fault_q;
  logic [63:0] address_q;
  logic [7:0]  length_q;
  logic        new_burst;
  logic [4:0]  first_q, second_q, third_q;  // beats of the bursts whose last beat has not left, the oldest first; or 0
  logic [4:0]  first, second, third;        // with the burst that is offered for the first time
  logic [4:0]  gone_q;                      // beats of the first that have left
  logic [31:0] pushed_q;                    // results of the run that entered the FIFO
  logic [31:0] before_q, begun;             // beats of the run's bursts without the newest, and with it
  logic [63:0] expected_q, follows;         // the address of the newest burst, and of the next
  logic [7:0]  come_q, gone_by_q;           // numbers of the next result that enters the FIFO, and of that at its front
  logic [7:0]  tracked_q;
  logic        inside_q;                    // the result is in the FIFO
  logic [4:0]  slot_q, behind;
  logic [7:0]  content_q;
  logic [Width-1:0] kept;
  assign new_burst = awvalid_o & ~waited_q;
  assign begun     = before_q + (new_burst ? 32'(awlen_o) + 32'd1 : 32'd0);
  assign follows   = new_burst ? awaddr_o + 64'(BurstBytes) : expected_q;
  assign behind    = slot_q - read_q;
  assign kept      = fifo_q[slot_q];
  always_comb begin
    {first, second, third} = {first_q, second_q, third_q};
    if (new_burst) begin
      if (first_q == '0) first = 5'(awlen_o) + 5'd1;
      else if (second_q == '0) second = 5'(awlen_o) + 5'd1;
      else third = 5'(awlen_o) + 5'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    waited_q      <= rst_ni & awvalid_o & ~awready_i;
    beat_waited_q <= rst_ni & wvalid_o & ~wready_i;
    mark_q        <= wlast_o;
    address_q     <= awaddr_o;
    length_q      <= awlen_o;
    first_q       <= !rst_ni ? '0 : last ? second : first;
    second_q      <= !rst_ni ? '0 : last ? third : second;
    third_q       <= !rst_ni || last ? '0 : third;
    gone_q        <= !rst_ni || last ? '0 : gone_q + 5'(pop);
    pushed_q      <= start_i ? '0 : pushed_q + 32'(push);
    come_q        <= !rst_ni ? '0 : come_q + 8'(push);
    gone_by_q     <= !rst_ni ? '0 : gone_by_q + 8'(pop);
    expected_q    <= start_i ? address_i : follows;
    before_q      <= start_i ? '0 : begun;
    fault_q       <= ~start_i & (fault_q | (answered & bresp_i[1]));
    inside_q      <= rst_ni & ((inside_q & ~(pop & (gone_by_q == tracked_q))) | (push & (come_q == tracked_q)));
    if (!past_q) tracked_q <= room_i[7:0];  // which is any number then
    if (push && come_q == tracked_q) begin
      slot_q    <= write_q;
      content_q <= data_i[7:0];
    end
    if (past_q && rst_ni) begin
      assert (busy_o == (held_q != '0 || awvalid_o || wvalid_o || taken_q != '0 || written_q != '0));

      if (!run_q) assert (!busy_o);

      // The FIFO.
      assert (5'(write_q - read_q) == held_q[4:0]);
      assert (8'(come_q - gone_by_q) == 8'(held_q));
      if (run_q) assert (pushed_q <= run_room_q);
      if (run_q && !overflow_o) assert (pushed_q == results_o);
      if (run_q && overflow_o && !ended_i) assert (pushed_q == run_room_q);
      if (inside_q) assert (6'(behind) < held_q && gone_by_q + 8'(behind) == tracked_q && kept[7:0] == content_q);
      if (!inside_q) assert (8'(tracked_q - gone_by_q) >= 8'(held_q));
      if (wvalid_o && gone_by_q == tracked_q) assert (inside_q && wdata_o[7:0] == content_q);

      // Addresses.
      if (waited_q) assert (awvalid_o && awaddr_o == address_q && awlen_o == length_q);
      if (awvalid_o) assert (awlen_o <= 8'd15 && 64'(awaddr_o[11:0]) + 64'(awlen_o + 8'd1) * Width / 8 <= 4096);
      if (awvalid_o) assert ((awaddr_o & 64'(BurstBytes - 1)) == '0);
      if (new_burst) assert (before_q[3:0] == '0 && awaddr_o == expected_q);
      if (awvalid_o) assert (awlen_o == 8'd15 || (ended_i && unasked_q == '0 && begun[3:0] == awlen_o[3:0] + 4'd1));
      if (run_q) assert (begun + 32'(unasked_q) == pushed_q && begun <= pushed_q);
      if (run_q) assert ((next_q & 64'(BurstBytes - 1)) == '0);
      if (run_q) assert (next_q == follows);
      if (run_q && begun[3:0] != '0) assert (ended_i && unasked_q == '0);

      // Beats.
      assert (wvalid_o == (first != '0));
      if (wvalid_o) assert (wlast_o == (gone_q + 5'd1 == first));
      if (beat_waited_q) assert (wvalid_o && wlast_o == mark_q);
      assert (gone_q == 5'(sent_q) && asked_q == 6'(first) + 6'(second) + 6'(third) - 6'(gone_q));
      assert (gone_q < first || (first == '0 && gone_q == '0));
      assert (first <= 5'd16 && second <= 5'd16 && third <= 5'd16 && !(third_q != '0 && new_burst));
      if (second != '0) assert (first == 5'd16);
      if (third != '0) assert (second == 5'd16);
      if (!ended_i || unasked_q != '0) begin
        assert (first == '0 || first == 5'd16);
        assert (second == '0 || second == 5'd16);
        assert (third == '0 || third == 5'd16);
      end

      // Answers.
      assert (5'(open_q) == 5'(written_q) + 5'(first != '0) + 5'(second != '0) + 5'(third != '0));
      if (run_q) assert (fault_o == fault_q);
      assert (bready_o);

      // Something is done next.
      if (busy_o && (ended_i || !ready_o)) begin
        assert (begins || awvalid_o || wvalid_o || (taken_q != '0 && written_q != '0));
      end

      // The proof is not empty: of a burst of two, the last beat waits beside the address.
      cover (beat_waited_q && waited_q && wlast_o && first == 5'd2);
    end
  end
`endif
`undef OF_SHELL
`endif
endmodule
