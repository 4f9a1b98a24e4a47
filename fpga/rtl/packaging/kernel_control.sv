// The registers of a kernel, as a host sees them by AXI4-Lite: those of a run, and behind WindowBase the unit's own.
//
// A register or table entry of the unit with address a lies at WindowBase + 8 a: the low word is kept, and the write of
// the high word writes both to the unit. Words are written whole; a write with other strobes changes nothing, and so
// does any write while a run is under way. Addresses of memory are multiples of 4096 bytes.
module kernel_control (
  input  logic        clk_i,
  input  logic        rst_ni,

  // AXI4-Lite. Every access is answered with OKAY; what is not there reads as 0.
  input  logic        awvalid_i,
  output logic        awready_o,
  input  logic [19:0] awaddr_i,
  input  logic        wvalid_i,
  output logic        wready_o,
  input  logic [31:0] wdata_i,
  input  logic [3:0]  wstrb_i,
  output logic        bvalid_o,
  input  logic        bready_i,
  input  logic        arvalid_i,
  output logic        arready_o,
  input  logic [19:0] araddr_i,
  output logic        rvalid_o,
  input  logic        rready_i,
  output logic [31:0] rdata_o,

  // The unit's registers.
  output logic        register_write_o,
  output logic [15:0] register_address_o,
  output logic [63:0] register_data_o,

  // A run.
  output logic        start_o,  // for a cycle
  output logic [63:0] input_o,
  output logic [31:0] transfers_o,
  output logic [63:0] output_o,
  output logic [31:0] room_o,
  input  logic        busy_i,   // from the cycle after start_o until all results are in memory
  input  logic [31:0] results_i,
  input  logic [2:0]  status_i,
  input  logic [31:0] cycles_i
);
  // A write waits for both its address and its word.
  logic        address_q, word_q, answer_q, whole_q;
  logic [19:0] write_address_q;
  logic [31:0] write_data_q;
  logic        write;
  assign write     = address_q & word_q & ~answer_q;
  assign awready_o = ~address_q;
  assign wready_o  = ~word_q;
  assign bvalid_o  = answer_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      address_q <= 1'b0;
      word_q    <= 1'b0;
      answer_q  <= 1'b0;
    end else begin
      address_q <= ~write & (address_q | awvalid_i);
      word_q    <= ~write & (word_q | wvalid_i);
      answer_q  <= write | (answer_q & ~bready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!address_q) write_address_q <= awaddr_i;
    if (!word_q) begin
      write_data_q <= wdata_i;
      whole_q      <= wstrb_i == 4'hf;
    end
  end

  logic busy;
  assign busy = busy_i | start_o;
  logic accepted, to_unit, to_run;
  assign accepted = write & whole_q & ~busy;
  assign to_unit  = accepted & ((write_address_q & kernel_registers::WindowBase) != '0);
  assign to_run   = accepted & (write_address_q[19:7] == '0);

  logic [31:0] low_q;
  always_ff @(posedge clk_i) begin
    if (to_unit && !write_address_q[2]) low_q <= write_data_q;
    register_write_o   <= rst_ni & to_unit & write_address_q[2];
    register_address_o <= write_address_q[18:3];
    register_data_o    <= {write_data_q, low_q};
  end

  logic [19:0] input_low_q, output_low_q;  // bits 31 to 12
  logic [31:0] input_high_q, output_high_q;
  logic        done_q;
  logic        was_busy_q;
  always_ff @(posedge clk_i) begin
    if (to_run) begin
      case (write_address_q)
        kernel_registers::InputAddress:          input_low_q   <= write_data_q[31:12];
        kernel_registers::InputAddress + 20'd4:  input_high_q  <= write_data_q;
        kernel_registers::Transfers:             transfers_o   <= write_data_q;
        kernel_registers::OutputAddress:         output_low_q  <= write_data_q[31:12];
        kernel_registers::OutputAddress + 20'd4: output_high_q <= write_data_q;
        kernel_registers::Room:                  room_o        <= write_data_q;
        default: ;
      endcase
    end
    start_o <= rst_ni & to_run & (write_address_q == kernel_registers::Control) & write_data_q[0];
  end
  assign input_o  = {input_high_q, input_low_q, 12'b0};
  assign output_o = {output_high_q, output_low_q, 12'b0};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q     <= 1'b0;
      was_busy_q <= 1'b0;
    end else begin
      was_busy_q <= busy_i;
      done_q     <= ~start_o & (done_q | (was_busy_q & ~busy_i));
    end
  end

  // Reads.
  assign arready_o = ~rvalid_o;
  always_ff @(posedge clk_i) begin
    rvalid_o <= rst_ni & (rvalid_o ? ~rready_i : arvalid_i);
    if (!rvalid_o) begin
      case (araddr_i)
        kernel_registers::Control:               rdata_o <= {29'b0, ~busy & ~was_busy_q, done_q, busy | was_busy_q};
        kernel_registers::InputAddress:          rdata_o <= input_o[31:0];
        kernel_registers::InputAddress + 20'd4:  rdata_o <= input_o[63:32];
        kernel_registers::Transfers:             rdata_o <= transfers_o;
        kernel_registers::OutputAddress:         rdata_o <= output_o[31:0];
        kernel_registers::OutputAddress + 20'd4: rdata_o <= output_o[63:32];
        kernel_registers::Room:                  rdata_o <= room_o;
        kernel_registers::Results:               rdata_o <= results_i;
        kernel_registers::Status:                rdata_o <= {29'b0, status_i};
        kernel_registers::Cycles:                rdata_o <= cycles_i;
        default:                                 rdata_o <= '0;
      endcase
    end
  end

`ifdef FORMAL
  // Shown by induction, whatever the host does, if busy_i is as the port says: every write is answered once, behind its
  // address and its word, and every read once, behind its address; answers stay as they are until they are taken; a run
  // begins exactly when the host writes so and no run is under way, and ends once; the registers of a run do not change
  // during it, read as they were written, and are those that the memory's side sees; and the unit's registers are
  // written by high words alone.
  //
  // The register of a run at the address tracked_q, any address, is followed. The shell keeps what is assumed of it,
  // which its own proof shows with FORMAL_SHELL.
`ifdef FORMAL_SHELL
  `define OF_SHELL assert
`else
  `define OF_SHELL assume
`endif
  logic         past_q;
  logic         started_q, working_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q    <= 1'b1;
    started_q <= rst_ni & start_o;
    working_q <= rst_ni & busy_i;
    if (!past_q) `OF_SHELL (!rst_ni);
    if (past_q) `OF_SHELL (started_q ? busy_i : (!busy_i || working_q));
  end
`ifndef FORMAL_SHELL
  logic [1:0]   addresses_q, words_q, reads_q;  // that were taken and not answered
  logic [19:0]  bus_address_q;
  logic [31:0]  bus_word_q;
  logic [3:0]   bus_strobes_q;
  logic         answer_due_q, answered_q, read_q, read_waited_q;
  logic [31:0]  answer_before_q;
  logic         written;                        // a write changes registers
  logic         start_due_q, start_before_q, owed_q, owed_before_q, done_before_q;
  logic         running_q;
  logic [191:0] run_q;
  logic         unit_due_q;
  logic [15:0]  unit_address_q;
  logic [63:0]  unit_data_q;
  logic [31:0]  unit_low_q;
  logic         unit_known_q;
  logic [19:0]  tracked_q;
  logic         known_q, seen_q, of_control_q;
  logic [31:0]  value_q, seen_value_q;
  logic [2:0]   state_q;
  assign written = write & (bus_strobes_q == 4'hf) & ~busy_i & ~start_o;
  initial known_q      = 1'b0;
  initial unit_known_q = 1'b0;
  always_ff @(posedge clk_i) begin
    addresses_q <= !rst_ni ? '0 : addresses_q + 2'(awvalid_i & awready_o) - 2'(bvalid_o & bready_i);
    words_q     <= !rst_ni ? '0 : words_q + 2'(wvalid_i & wready_o) - 2'(bvalid_o & bready_i);
    reads_q     <= !rst_ni ? '0 : reads_q + 2'(arvalid_i & arready_o) - 2'(rvalid_o & rready_i);
    if (awvalid_i && awready_o) bus_address_q <= awaddr_i;
    if (wvalid_i && wready_o) {bus_word_q, bus_strobes_q} <= {wdata_i, wstrb_i};
    answer_due_q    <= rst_ni & (addresses_q != '0) & (words_q != '0) & ~(bvalid_o & bready_i);
    answered_q      <= rst_ni & bvalid_o & bready_i;
    read_q          <= rst_ni & arvalid_i & arready_o;
    read_waited_q   <= rst_ni & rvalid_o & ~rready_i;
    answer_before_q <= rdata_o;
    start_due_q     <= rst_ni & written & (bus_address_q == kernel_registers::Control) & bus_word_q[0];
    start_before_q  <= rst_ni & start_o;
    owed_q          <= rst_ni & (start_o | (owed_q & ~(was_busy_q & ~busy_i)));
    owed_before_q   <= rst_ni & owed_q;
    done_before_q   <= rst_ni & done_q;
    running_q       <= rst_ni & (busy_i | start_o);
    run_q           <= {input_o, transfers_o, output_o, room_o};
    unit_due_q      <= rst_ni & written & bus_address_q[19] & bus_address_q[2];
    unit_address_q  <= bus_address_q[18:3];
    unit_data_q     <= {bus_word_q, unit_low_q};
    if (past_q && written && bus_address_q[19] && !bus_address_q[2]) begin
      unit_low_q   <= bus_word_q;
      unit_known_q <= 1'b1;
    end
    if (!past_q) tracked_q <= awaddr_i;  // which is any number then
    if (past_q && written && bus_address_q == tracked_q) begin
      known_q <= 1'b1;
      value_q <= bus_word_q;
      if (tracked_q == kernel_registers::InputAddress || tracked_q == kernel_registers::OutputAddress) begin
        value_q[11:0] <= '0;
      end
    end
    seen_q       <= rst_ni & arvalid_i & arready_o & known_q & (araddr_i == tracked_q);
    seen_value_q <= value_q;
    of_control_q <= rst_ni & arvalid_i & arready_o & (araddr_i == kernel_registers::Control);
    state_q      <= {~owed_q & ~start_o, done_q, owed_q | start_o};
    if (past_q) begin
      // Answers.
      assert (addresses_q == 2'(address_q) + 2'(answer_q) && words_q == 2'(word_q) + 2'(answer_q));
      if (bvalid_o) assert (addresses_q != '0 && words_q != '0);
      if (answer_due_q) assert (bvalid_o);
      if (address_q) assert (write_address_q == bus_address_q);
      if (word_q) assert (write_data_q == bus_word_q && whole_q == (bus_strobes_q == 4'hf));
      if (awvalid_i && !awready_o) assert (wready_o || write || bvalid_o);
      if (wvalid_i && !wready_o) assert (awready_o || write || bvalid_o);
      assert (reads_q == 2'(rvalid_o));
      if (read_q) assert (rvalid_o);
      if (read_waited_q) assert (rvalid_o && rdata_o == answer_before_q);

      // Runs.
      assert (start_o == start_due_q && !(start_o && busy_i));
      assert (owed_q == (busy_i || was_busy_q));
      assert (!(owed_q && done_q));
      assert ((done_q && !done_before_q) == (owed_before_q && !owed_q));
      if (done_before_q && !done_q) assert (start_before_q);
      if (running_q) assert (run_q == {input_o, transfers_o, output_o, room_o});
      if (of_control_q) assert (rdata_o == 32'(state_q));

      // Registers.
      assert (register_write_o == unit_due_q);
      if (unit_due_q) assert (register_address_o == unit_address_q && register_data_o[63:32] == unit_data_q[63:32]);
      if (unit_due_q && unit_known_q) assert (register_data_o[31:0] == unit_data_q[31:0]);
      if (unit_known_q) assert (low_q == unit_low_q);
      if (known_q) begin
        if (tracked_q == kernel_registers::InputAddress) assert (input_o[31:0] == value_q);
        if (tracked_q == kernel_registers::InputAddress + 20'd4) assert (input_o[63:32] == value_q);
        if (tracked_q == kernel_registers::Transfers) assert (transfers_o == value_q);
        if (tracked_q == kernel_registers::OutputAddress) assert (output_o[31:0] == value_q);
        if (tracked_q == kernel_registers::OutputAddress + 20'd4) assert (output_o[63:32] == value_q);
        if (tracked_q == kernel_registers::Room) assert (room_o == value_q);
      end
      if (seen_q && of_run) assert (rdata_o == seen_value_q);
    end
  end
  logic of_run;  // what is tracked is a register that a host writes for a run
  assign of_run = (tracked_q & ~20'd4) == kernel_registers::InputAddress ||
                  (tracked_q & ~20'd4) == kernel_registers::OutputAddress ||
                  tracked_q == kernel_registers::Transfers || tracked_q == kernel_registers::Room;
`endif
`undef OF_SHELL
`endif
endmodule
