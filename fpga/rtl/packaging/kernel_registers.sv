// The registers of a run. Made of Controls in controls.go; do not edit.
package kernel_registers;
  // bit 0: write 1 to begin a run, reads 1 during it; bit 1: a run has ended; bit 2: idle
  localparam logic [19:0] Control = 20'h00000;
  // of the transfers, a multiple of 4096
  localparam logic [19:0] InputAddress = 20'h00010;
  // how many transfers there are
  localparam logic [19:0] Transfers = 20'h00018;
  // of the results, a multiple of 4096
  localparam logic [19:0] OutputAddress = 20'h00020;
  // how many results have room there
  localparam logic [19:0] Room = 20'h00028;
  // read only: how many results the run made, those without room included
  localparam logic [19:0] Results = 20'h00030;
  // read only; bit 0: results had no room or came late; bit 1: a read failed; bit 2: a write failed
  localparam logic [19:0] Status = 20'h00038;
  // read only: cycles of the run
  localparam logic [19:0] Cycles = 20'h00040;
  // The register or table entry of the unit with address a lies 8 a behind.
  localparam logic [19:0] WindowBase = 20'h80000;
endpackage
