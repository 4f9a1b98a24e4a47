// Delays a value by a fixed number of cycles. It has no reset, so that synthesis may use shift registers in LUTs.
module delay_line #(
  parameter int unsigned Width  = 64,
  parameter int unsigned Cycles = 1
) (
  input  logic             clk_i,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);
  logic [Cycles*Width-1:0] line_q;

  if (Cycles == 1) begin : gen_one
    always_ff @(posedge clk_i) line_q <= data_i;
  end else begin : gen_several
    always_ff @(posedge clk_i) line_q <= {line_q[(Cycles-1)*Width-1:0], data_i};
  end

  assign data_o = line_q[(Cycles-1)*Width +: Width];
endmodule
