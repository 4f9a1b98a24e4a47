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
endmodule
