// The unit bucketize: a float32 becomes the number of borders below it, as TorchArrow counts them (side left).
//
// A search tree of 12 levels, each with a memory of its own, holds the first 4095 borders; a register holds the 4096th.
// A node is {duplicate, order of the border}. Duplicate says that the border is there twice: then the border's own
// value goes one bucket further. Nodes without a border hold the greatest order, which no value exceeds. A NaN goes to
// bucket 1, or to 0 if there is one border only.
//
// Address a of the tree, 1 to 4095, is the node in breadth-first order: the level is floor(log2 a).
module bucketize (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [63:0] in_data_i,

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [63:0] out_data_o
);
  localparam int unsigned Levels = 12;

  logic unused_bits;
  assign unused_bits = ^{register_data_i[63:33], in_data_i[63:32]};

  logic        several_q;     // two borders or more
  logic [32:0] last_q;        // the 4096th border: {whether it is there, its order}
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        bucketize_registers::Several: several_q <= register_data_i[0];
        bucketize_registers::Last:    last_q    <= register_data_i[32:0];
        default: ;
      endcase
    end
  end

  // Cycle 1: the order of the value, as in unit clamp.
  logic [31:0] value;
  assign value = in_data_i[31:0];
  logic [31:0] order_first_q;
  logic        nan_first_q;
  always_ff @(posedge clk_i) begin
    nan_first_q <= (value[30:23] == 8'hff) & (value[22:0] != '0);
    if (value[30:0] == '0) order_first_q <= 32'h8000_0000;
    else if (value[31]) order_first_q <= ~value;
    else order_first_q <= value ^ 32'h8000_0000;
  end

  // Before level k: the order, whether it is a NaN, whether a duplicate border was met, and the k decisions so far.
  localparam int unsigned StateWidth = 32 + 1 + 1 + Levels;
  logic [(Levels+1)*StateWidth-1:0] states;
  assign states[0 +: StateWidth] = {order_first_q, nan_first_q, 1'b0, (Levels)'(0)};

  // Two cycles a level: the node is read, then compared.
  for (genvar level = 0; level < Levels; level++) begin : gen_level
    localparam int unsigned Nodes = 2 ** level;
    localparam int unsigned AddressWidth = level == 0 ? 1 : level;
    logic [32:0] nodes_q [Nodes];

    logic write;
    assign write = register_write_i & (register_address_i[15:level+1] == '0) & register_address_i[level];

    logic [StateWidth-1:0] state, state_q, next_q;
    assign state = states[level*StateWidth +: StateWidth];

    logic [AddressWidth-1:0] write_address, read_address;
    if (level == 0) begin : gen_root
      assign write_address = '0;
      assign read_address  = '0;
    end else begin : gen_inner
      assign write_address = register_address_i[level-1:0];
      assign read_address  = state[level-1:0];
    end

    logic [32:0] node_q;
    always_ff @(posedge clk_i) begin
      if (write) nodes_q[write_address] <= register_data_i[32:0];
    end
    always_ff @(posedge clk_i) begin
      node_q  <= nodes_q[read_address];
      state_q <= state;
    end

    logic [31:0] order;
    assign order = state_q[StateWidth-1 -: 32];
    always_ff @(posedge clk_i) begin
      next_q <= {
        state_q[StateWidth-1 : Levels+1],                               // the order and NaN
        state_q[Levels] | (node_q[32] & (order == node_q[31:0])),       // duplicate
        state_q[Levels-2:0], order > node_q[31:0]                       // the decisions
      };
    end
    assign states[(level+1)*StateWidth +: StateWidth] = next_q;
  end

  // The last two cycles: the 4096th border, then duplicate and NaN.
  logic [StateWidth-1:0] found;
  assign found = states[Levels*StateWidth +: StateWidth];
  logic [12:0] below_q;
  logic        duplicate_q, nan_q;
  logic [12:0] bucket_q;
  always_ff @(posedge clk_i) begin
    below_q     <= 13'(found[Levels-1:0]) + 13'(last_q[32] && found[StateWidth-1 -: 32] > last_q[31:0]);
    duplicate_q <= found[Levels];
    nan_q       <= found[Levels+1];
    bucket_q    <= nan_q ? 13'(several_q) : below_q + 13'(duplicate_q);
  end

  stream_credit_pipe #(.Width(13), .Latency(1 + 2 * Levels + 2)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(bucket_q),
    .out_valid_o, .out_ready_i, .out_data_o(out_data_o[12:0])
  );
  assign out_data_o[63:13] = '0;
endmodule
