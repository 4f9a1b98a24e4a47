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
endmodule
