// A pipelined product of two unsigned numbers: its bits LowBit to ProductWidth - 1.
//
// The operands are cut into tiles of 26 and 17 bits, the largest unsigned factors of a DSP48E2 slice. Each tile has
// registers at both sides, which placement moves into the slice. A binary tree adds the tiles, a level a cycle.
// The latency is 2 + $clog2(number of tiles); tiles that lie above ProductWidth are left out of the sum but not of the
// tree's depth, so that the latency follows from the operands alone.
module multiplier #(
  parameter int unsigned AWidth       = 64,
  parameter int unsigned BWidth       = 64,
  parameter int unsigned ProductWidth = 64,
  parameter int unsigned LowBit       = 0,
  localparam int unsigned ATiles      = (AWidth + 25) / 26,
  localparam int unsigned BTiles      = (BWidth + 16) / 17,
  localparam int unsigned Levels      = $clog2(ATiles * BTiles),
  localparam int unsigned Leaves      = 2 ** Levels
) (
  input  logic                           clk_i,
  input  logic [AWidth-1:0]              a_i,
  input  logic [BWidth-1:0]              b_i,
  output logic [ProductWidth-LowBit-1:0] product_o
);
  logic [ATiles*26-1:0] a_q;
  logic [BTiles*17-1:0] b_q;

  always_ff @(posedge clk_i) begin
    a_q <= (ATiles * 26)'(a_i);
    b_q <= (BTiles * 17)'(b_i);
  end

  // A heap: node k is the sum of nodes 2k + 1 and 2k + 2, and the last Leaves nodes are the tiles' products.
  logic [(2*Leaves-1)*ProductWidth-1:0] heap_q;

  for (genvar leaf = 0; leaf < Leaves; leaf++) begin : gen_leaf
    localparam int unsigned Node  = Leaves - 1 + leaf;
    localparam int unsigned A     = leaf / BTiles;
    localparam int unsigned B     = leaf % BTiles;
    localparam int unsigned Shift = 26 * A + 17 * B;
    if (A < ATiles && Shift < ProductWidth) begin : gen_tile
      logic [42:0] tile_q;
      always_ff @(posedge clk_i) tile_q <= 43'(a_q[A*26 +: 26]) * 43'(b_q[B*17 +: 17]);
      assign heap_q[Node*ProductWidth +: ProductWidth] = ProductWidth'({128'b0, tile_q} << Shift);
    end else begin : gen_nothing
      assign heap_q[Node*ProductWidth +: ProductWidth] = '0;
    end
  end

  for (genvar node = 0; node < Leaves - 1; node++) begin : gen_sum
    logic [ProductWidth-1:0] sum_q;
    always_ff @(posedge clk_i) begin
      sum_q <= heap_q[(2*node+1)*ProductWidth +: ProductWidth] + heap_q[(2*node+2)*ProductWidth +: ProductWidth];
    end
    assign heap_q[node*ProductWidth +: ProductWidth] = sum_q;
  end

  assign product_o = heap_q[ProductWidth-1:LowBit];
  if (LowBit > 0) begin : gen_low
    logic unused_low;
    assign unused_low = ^heap_q[LowBit-1:0];
  end
endmodule
