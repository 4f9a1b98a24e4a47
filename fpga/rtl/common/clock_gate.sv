// A clock that may stand still in cycles in which enable_i is 0. What it clocks must not depend on whether it does.
//
// A simulator saves the work of such cycles. In a device the clock goes on, so that it needs no gate.
module clock_gate (
  input  logic clk_i,
  input  logic enable_i,  // of the cycle that the rising edge ends
  output logic clk_o
);
`ifdef VERILATOR
  // The latch holds the enable while the clock is high, so that clk_o has no edge of its own.
  logic enable_q;
  always_latch if (!clk_i) enable_q = enable_i;
  assign clk_o = clk_i & enable_q;
`else
  logic unused_enable;
  assign unused_enable = enable_i;
  assign clk_o         = clk_i;
`endif
endmodule
