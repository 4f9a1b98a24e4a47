// What a unit needs around it to be a kernel of a board: registers by AXI4-Lite, and transfers and results in memory.
//
// A run takes the transfers from memory, one behind the other, and leaves the results in memory. It ends when all
// transfers were taken and all results came: as many as transfers or, of a unit that marks the last transfer of a
// section, those of as many sections as the transfers have.
module kernel_shell #(
  parameter int unsigned InputBits   = 64,  // of a transfer, without what fills the beat
  parameter int unsigned InputWidth  = 64,  // of a beat
  parameter int unsigned OutputBits  = 64,
  parameter int unsigned OutputWidth = 64,
  parameter int unsigned Sections    = 0,   // 1: transfers mark the last of a section
  parameter int unsigned InputLast   = 0,   // the bit that marks the last transfer of a section
  parameter int unsigned OutputLast  = 0
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The host.
  input  logic                   control_awvalid_i,
  output logic                   control_awready_o,
  input  logic [19:0]            control_awaddr_i,
  input  logic                   control_wvalid_i,
  output logic                   control_wready_o,
  input  logic [31:0]            control_wdata_i,
  input  logic [3:0]             control_wstrb_i,
  output logic                   control_bvalid_o,
  input  logic                   control_bready_i,
  input  logic                   control_arvalid_i,
  output logic                   control_arready_o,
  input  logic [19:0]            control_araddr_i,
  output logic                   control_rvalid_o,
  input  logic                   control_rready_i,
  output logic [31:0]            control_rdata_o,

  // Memory.
  output logic                   arvalid_o,
  input  logic                   arready_i,
  output logic [63:0]            araddr_o,
  output logic [7:0]             arlen_o,
  input  logic                   rvalid_i,
  output logic                   rready_o,
  input  logic [InputWidth-1:0]  rdata_i,
  input  logic [1:0]             rresp_i,
  output logic                   awvalid_o,
  input  logic                   awready_i,
  output logic [63:0]            awaddr_o,
  output logic [7:0]             awlen_o,
  output logic                   wvalid_o,
  input  logic                   wready_i,
  output logic [OutputWidth-1:0] wdata_o,
  output logic                   wlast_o,
  input  logic                   bvalid_i,
  output logic                   bready_o,
  input  logic [1:0]             bresp_i,

  // The unit.
  output logic                   register_write_o,
  output logic [15:0]            register_address_o,
  output logic [63:0]            register_data_o,
  output logic                   in_valid_o,
  input  logic                   in_ready_i,
  output logic [InputBits-1:0]   in_data_o,
  input  logic                   out_valid_i,
  output logic                   out_ready_o,
  input  logic [OutputBits-1:0]  out_data_i
);
  logic        start, busy_q, reading, writing, ended;
  logic        overflow, read_fault, write_fault;
  logic [63:0] input_address, output_address;
  logic [31:0] transfers, room, results, cycles_q;

  kernel_control u_control (
    .clk_i, .rst_ni,
    .awvalid_i(control_awvalid_i), .awready_o(control_awready_o), .awaddr_i(control_awaddr_i),
    .wvalid_i(control_wvalid_i), .wready_o(control_wready_o), .wdata_i(control_wdata_i), .wstrb_i(control_wstrb_i),
    .bvalid_o(control_bvalid_o), .bready_i(control_bready_i),
    .arvalid_i(control_arvalid_i), .arready_o(control_arready_o), .araddr_i(control_araddr_i),
    .rvalid_o(control_rvalid_o), .rready_i(control_rready_i), .rdata_o(control_rdata_o),
    .register_write_o, .register_address_o, .register_data_o,
    .start_o(start), .input_o(input_address), .transfers_o(transfers), .output_o(output_address), .room_o(room),
    .busy_i(busy_q), .results_i(results), .status_i({write_fault, read_fault, overflow}), .cycles_i(cycles_q)
  );

  logic [InputWidth-1:0] beat;
  memory_reader #(.Width(InputWidth)) u_reader (
    .clk_i, .rst_ni, .start_i(start), .address_i(input_address), .transfers_i(transfers),
    .busy_o(reading), .fault_o(read_fault),
    .arvalid_o, .arready_i, .araddr_o, .arlen_o, .rvalid_i, .rready_o, .rdata_i, .rresp_i,
    .valid_o(in_valid_o), .ready_i(in_ready_i), .data_o(beat)
  );
  assign in_data_o = beat[InputBits-1:0];

  logic [OutputWidth-1:0] result;
  always_comb begin
    result                 = '0;
    result[OutputBits-1:0] = out_data_i;
  end
  memory_writer #(.Width(OutputWidth)) u_writer (
    .clk_i, .rst_ni, .start_i(start), .address_i(output_address), .room_i(room), .ended_i(ended),
    .busy_o(writing), .results_o(results), .overflow_o(overflow), .fault_o(write_fault),
    .valid_i(out_valid_i), .ready_o(out_ready_o), .data_i(result),
    .awvalid_o, .awready_i, .awaddr_o, .awlen_o, .wvalid_o, .wready_i, .wdata_o, .wlast_o,
    .bvalid_i, .bready_o, .bresp_i
  );

  // The results that are to come, or the sections that are to end: for a moment fewer than none if a unit ends a
  // section before its last transfer.
  logic [31:0] awaited_q;
  logic        enters, leaves;  // results that come when none is awaited are dropped
  assign enters = in_valid_o & in_ready_i & (Sections != 0 ? in_data_o[InputLast] : 1'b1);
  assign leaves = out_valid_i & out_ready_o & ~ended & (Sections != 0 ? out_data_i[OutputLast] : 1'b1);
  assign ended  = ~reading & (awaited_q == '0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q    <= 1'b0;
      awaited_q <= '0;
    end else begin
      busy_q    <= start | (busy_q & ~(ended & ~writing));
      awaited_q <= awaited_q + 32'(enters) - 32'(leaves);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) cycles_q <= '0;
    else cycles_q <= cycles_q + 32'(busy_q);
  end

  // What fills a beat behind its transfer.
  logic unused_fill;
  assign unused_fill = ^beat;

`ifdef FORMAL
  // Shown by induction, with what the modules within show of the memory's and the host's side, whatever the unit, the
  // host and the memory do: nothing is offered after a reset; a run ends when all of its transfers were taken and its
  // results are in memory, and nothing is under way before the next. As long as the unit keeps its contract, no result
  // of it is dropped but for want of room, and a run that has not ended waits for the memory or the unit, or goes on
  // within a cycle: no run stands still.
  //
  // The contract of a unit: a result comes for each transfer, or as many as it likes for each section, of which the
  // last is marked; none comes before the transfer or the section has begun. Transfers of a run end with a section's
  // last.
  logic        past_q, reset_q, settled_q;
  logic [31:0] inside_q;    // transfers or sections of which the unit has taken the last and not given the last result
  logic        partial_q;   // it has taken the first transfer of a section and not the last
  logic        contract_q, contract;
  logic        running_q, finished;
  // In the run so far, each side has waited once, and a beat left before its burst's address was taken.
  logic        ar_waited_q, r_waited_q, aw_waited_q, w_waited_q, before_address_q;
  logic        answer_waited_q, read_waited_q;  // the host has waited with taking an answer
  initial past_q = 1'b0;
  assign contract = contract_q & ~(out_valid_i & (inside_q + 32'(partial_q) == '0)) & ~(busy_q & ~reading & partial_q);
  assign finished = running_q & ~busy_q;
  logic stalled;
  assign stalled = ar_waited_q & r_waited_q & aw_waited_q & w_waited_q & before_address_q & answer_waited_q &
                   read_waited_q;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    reset_q       <= ~rst_ni;
    settled_q        <= rst_ni & busy_q & ended & ~writing;
    contract_q       <= ~rst_ni | contract;
    running_q        <= rst_ni & busy_q;
    ar_waited_q      <= ~start & (ar_waited_q | (arvalid_o & ~arready_i));
    r_waited_q       <= ~start & (r_waited_q | (rvalid_i & ~rready_o));
    aw_waited_q      <= ~start & (aw_waited_q | (awvalid_o & ~awready_i));
    w_waited_q       <= ~start & (w_waited_q | (wvalid_o & ~wready_i));
    before_address_q <= ~start & (before_address_q | (awvalid_o & ~awready_i & wvalid_o & wready_i));
    answer_waited_q  <= ~start & (answer_waited_q | (control_bvalid_o & ~control_bready_i));
    read_waited_q    <= ~start & (read_waited_q | (control_rvalid_o & ~control_rready_i));
    if (!rst_ni) begin
      inside_q  <= '0;
      partial_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 32'(in_valid_o & in_ready_i & (Sections != 0 ? in_data_o[InputLast] : 1'b1)) -
                  32'(out_valid_i & out_ready_o & (Sections != 0 ? out_data_i[OutputLast] : 1'b1));
      if (Sections != 0 && in_valid_o && in_ready_i) partial_q <= ~in_data_o[InputLast];
    end
    if (past_q && reset_q) begin
      assert (!arvalid_o && !awvalid_o && !wvalid_o && !control_bvalid_o && !control_rvalid_o && !register_write_o);
    end
    if (past_q && rst_ni) begin
      if (!busy_q) assert (!reading && !writing && awaited_q == '0);
      if (settled_q) assert (!busy_q && !reading && !writing);
      if (contract_q) assert (inside_q == awaited_q);
      if (contract && !reading) assert (!partial_q);
      if (contract && out_valid_i) assert (!ended);
      if (contract && busy_q && !reading && !ended) assert (inside_q != '0);

      // The proof is not empty: a run of no transfers ends; one ends in which memory, unit and host waited and a read
      // and a write failed; and one ends whose result had no room.
      cover (finished && contract_q && transfers == '0 && results == '0);
      cover (finished && contract_q && results == 32'd1 && read_fault && write_fault && !overflow && stalled);
      cover (finished && contract_q && results == 32'd1 && overflow && room == '0);
    end
  end
`endif
endmodule
