// Reads the transfers of a run from memory by AXI4, one a beat.
//
// Bursts have up to 16 beats and do not cross 4096 bytes, since they begin at multiples of 16 beats behind an address
// that is a multiple of 4096. Up to 64 beats are under way, so that the memory's latency is hidden.
module memory_reader #(
  parameter int unsigned Width = 64  // bits of a beat: 64 to 1024, a power of two
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             start_i,
  input  logic [63:0]      address_i,
  input  logic [31:0]      transfers_i,
  output logic             busy_o,   // transfers are still to come
  output logic             fault_o,  // the memory answered a read of the run with an error

  output logic             arvalid_o,
  input  logic             arready_i,
  output logic [63:0]      araddr_o,
  output logic [7:0]       arlen_o,
  input  logic             rvalid_i,
  output logic             rready_o,
  input  logic [Width-1:0] rdata_i,
  input  logic [1:0]       rresp_i,

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);
  localparam int unsigned BurstBytes = 16 * Width / 8;

  logic [31:0] unasked_q;    // beats that no burst has asked for
  logic [31:0] left_q;       // beats that have not come
  logic [6:0]  under_way_q;  // beats that a burst has asked for and that have not come
  logic [63:0] next_q;       // the address of the next burst

  logic        ask, take;
  logic [4:0]  beats;
  assign ask   = (unasked_q != '0) & (~arvalid_o | arready_i) & (under_way_q <= 7'd48);
  assign beats = unasked_q[31:4] != '0 ? 5'd16 : {1'b0, unasked_q[3:0]};
  assign take  = rvalid_i & rready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      arvalid_o   <= 1'b0;
      unasked_q   <= '0;
      left_q      <= '0;
      under_way_q <= '0;
    end else if (start_i) begin
      unasked_q <= transfers_i;
      left_q    <= transfers_i;
    end else begin
      arvalid_o   <= ask | (arvalid_o & ~arready_i);
      if (ask) unasked_q <= unasked_q - 32'(beats);
      left_q      <= left_q - 32'(take);
      under_way_q <= under_way_q + (ask ? 7'(beats) : 7'd0) - 7'(take);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      next_q  <= address_i;
      fault_o <= 1'b0;
    end else begin
      if (ask) begin
        next_q   <= next_q + 64'(BurstBytes);
        araddr_o <= next_q;
        arlen_o  <= 8'(beats) - 8'd1;
      end
      fault_o <= fault_o | (take & rresp_i[1]);
    end
  end

  assign busy_o   = left_q != '0;
  assign rready_o = ready_i;
  assign valid_o  = rvalid_i;
  assign data_o   = rdata_i;

  logic unused_resp;
  assign unused_resp = rresp_i[0];

`ifdef FORMAL
  // Shown by induction, whatever the unit does, if the memory offers no beat that no burst asked for and each beat
  // until it is taken: an address stays as it is until it is taken; no burst crosses 4096 bytes; bursts lie behind one
  // another from the run's address on and ask for as many beats as there are transfers; up to 64 beats are under way; a
  // transfer stays until the unit takes it; and as long as beats are to come, this module, the memory or the unit has
  // something to do. The shell keeps what is assumed of it, which its own proof shows with FORMAL_SHELL.
`ifdef FORMAL_SHELL
  `define OF_SHELL assert
`else
  `define OF_SHELL assume
`endif
  logic             past_q;
  logic             run_q;            // a run has begun since the reset
  logic [31:0]      run_transfers_q;
  logic             waited_q, offered_q, waits_q, fault_q;
  logic [63:0]      address_q;
  logic [7:0]       length_q;
  logic [Width-1:0] offer_q;
  logic             new_burst;
  logic [6:0]       owed_q;           // beats that did not come of the bursts whose address was taken
  logic [31:0]      before_q, begun;  // beats of the run's bursts without the newest, and with it
  logic [63:0]      expected_q, follows;  // the address of the newest burst, and of the next
  assign new_burst = arvalid_o & ~waited_q;
  assign follows   = new_burst ? araddr_o + 64'(BurstBytes) : expected_q;
  assign begun     = before_q + (new_burst ? 32'(arlen_o) + 32'd1 : 32'd0);
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    run_q  <= rst_ni & (run_q | start_i);
    if (start_i) run_transfers_q <= transfers_i;
    expected_q <= start_i ? address_i : follows;
    waited_q  <= rst_ni & arvalid_o & ~arready_i;
    offered_q <= rst_ni & rvalid_i & ~rready_o;
    waits_q   <= rst_ni & valid_o & ~ready_i;
    address_q <= araddr_o;
    length_q  <= arlen_o;
    offer_q   <= rdata_i;
    owed_q    <= !rst_ni ? '0 : owed_q + (arvalid_o & arready_i ? 7'(arlen_o) + 7'd1 : 7'd0) - 7'(take);
    before_q  <= start_i ? '0 : begun;
    fault_q   <= ~start_i & (fault_q | (take & rresp_i[1]));
    if (!past_q) `OF_SHELL (!rst_ni);
    if (past_q && rst_ni) begin
      assume (!rvalid_i || owed_q != '0);
      if (offered_q) assume (rvalid_i && rdata_i == offer_q);
      if (start_i) `OF_SHELL (!busy_o && address_i[11:0] == '0);
      if (!run_q) assert (!busy_o);
      assert (busy_o == (unasked_q != '0 || arvalid_o || owed_q != '0));

      // Addresses.
      if (waited_q) assert (arvalid_o && araddr_o == address_q && arlen_o == length_q);
      if (arvalid_o) assert (arlen_o <= 8'd15 && 64'(araddr_o[11:0]) + 64'(arlen_o + 8'd1) * Width / 8 <= 4096);
      if (arvalid_o) assert ((araddr_o & 64'(BurstBytes - 1)) == '0);
      if (new_burst) assert (before_q[3:0] == '0 && araddr_o == expected_q);
      if (run_q) assert (begun + unasked_q == run_transfers_q);
      if (run_q) assert ((next_q & 64'(BurstBytes - 1)) == '0);
      if (run_q) assert (next_q == follows);
      if (run_q && begun[3:0] != '0) assert (unasked_q == '0);

      // Beats.
      assert (33'(left_q) == 33'(unasked_q) + 33'(under_way_q));
      assert (under_way_q <= 7'd64 && under_way_q == owed_q + (arvalid_o ? 7'(arlen_o) + 7'd1 : 7'd0));
      assert (take == (valid_o && ready_i));
      if (waits_q) assert (valid_o && data_o == offer_q);
      if (run_q) assert (fault_o == fault_q);

      // Something is done next.
      if (busy_o) assert (ask || arvalid_o || owed_q != '0);

      // The proof is not empty: a run goes on behind a multiple of 4096, which no burst crosses, while beats come.
      cover (waited_q && araddr_o[11:0] == '0 && before_q > 32'd16 && take);
    end
  end
`undef OF_SHELL
`endif
endmodule
