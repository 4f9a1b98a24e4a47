// The unit vocabulary: a key becomes its index in a vocabulary. The unit makes the vocabulary of a section, in which a
// key that is new gets the next index, or looks keys up in one that the host wrote.
//
// A memory holds the keys in the order of their indices, another an index for every key. A key has the index that the
// second says for it if the first, below the vocabulary's size, holds the key there. So nothing is cleared for the next
// section but the size. A key takes two cycles: it is looked up when what the key before it wrote is there, or is the
// key before it.
//
// Keys are 0 to 2^15 - 1. Others are not in the vocabulary, and get no index.
module vocabulary #(
  parameter int unsigned KeyWidth = 15
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [64:0] in_data_i,  // {last, key}

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [34:0] out_data_o  // {last, new, present, index}
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:KeyWidth+1];

  logic              fixed_q;  // the host wrote the vocabulary
  logic [KeyWidth:0] size_q;   // of that vocabulary
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        vocabulary_registers::Fixed: fixed_q <= register_data_i[0];
        vocabulary_registers::Size:  size_q  <= register_data_i[KeyWidth:0];
        default: ;
      endcase
    end
  end

  logic busy_q;  // a key came in the last cycle
  logic admitted, issue;
  assign in_ready_o = admitted & ~busy_q;
  assign issue      = in_valid_i & in_ready_o;
  always_ff @(posedge clk_i) busy_q <= rst_ni & issue;

  // Cycle 1: the key. Cycle 2: the index that the second memory says. Cycle 3: the key that the first one holds there.
  logic [KeyWidth-1:0] key1_q, key2_q, key3_q;
  logic [KeyWidth-1:0] index2_q, index3_q, held3_q;
  logic                valid1_q, valid2_q, valid3_q;
  logic                known1_q, known2_q, known3_q;  // the key is one of the unit's
  logic                last1_q, last2_q, last3_q;
  logic [KeyWidth-1:0] keys_q [2 ** KeyWidth];
  logic [KeyWidth-1:0] indices_q [2 ** KeyWidth];
  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni & issue;
    valid2_q <= rst_ni & valid1_q;
    valid3_q <= rst_ni & valid2_q;
    key1_q   <= in_data_i[KeyWidth-1:0];
    key2_q   <= key1_q;
    key3_q   <= key2_q;
    known1_q <= in_data_i[63:KeyWidth] == '0;
    known2_q <= known1_q;
    known3_q <= known2_q;
    last1_q  <= in_data_i[64];
    last2_q  <= last1_q;
    last3_q  <= last2_q;
    index2_q <= indices_q[key1_q];
    index3_q <= index2_q;
    held3_q  <= keys_q[index2_q];
  end

  // Still in cycle 3: whether the vocabulary has the key, and what it becomes.
  logic [KeyWidth:0]   count_q;         // keys of the section's vocabulary
  logic                before_valid_q;  // the section has a key before this one
  logic [KeyWidth-1:0] before_key_q, before_index_q;
  logic                again, found, is_new;
  logic [KeyWidth-1:0] index;
  assign again  = ~fixed_q & before_valid_q & (key3_q == before_key_q);
  assign found  = known3_q & (again | ((held3_q == key3_q) & ({1'b0, index3_q} < (fixed_q ? size_q : count_q))));
  assign is_new = known3_q & ~found & ~fixed_q;
  always_comb begin
    if (is_new) index = count_q[KeyWidth-1:0];
    else if (again) index = before_index_q;
    else index = index3_q;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (valid3_q && last3_q)) begin
      count_q        <= '0;
      before_valid_q <= 1'b0;
    end else if (valid3_q && known3_q) begin
      count_q        <= count_q + (KeyWidth + 1)'(is_new);
      before_valid_q <= 1'b1;
    end
    if (valid3_q && known3_q) begin
      before_key_q   <= key3_q;
      before_index_q <= index;
    end
  end

  logic                host, write;
  logic [KeyWidth-1:0] write_key, write_index;
  assign host        = register_write_i & (register_address_i[15:KeyWidth] == '0);
  assign write       = host | (valid3_q & is_new);
  assign write_key   = host ? register_data_i[KeyWidth-1:0] : key3_q;
  assign write_index = host ? register_address_i[KeyWidth-1:0] : count_q[KeyWidth-1:0];
  always_ff @(posedge clk_i) begin
    if (write) keys_q[write_index] <= write_key;
  end
  always_ff @(posedge clk_i) begin
    if (write) indices_q[write_key] <= write_index;
  end

  logic [34:0] result_q;
  always_ff @(posedge clk_i) begin
    result_q <= {last3_q, is_new, found | is_new, found | is_new ? 32'(index) : 32'd0};
  end

  stream_credit_pipe #(.Width(35), .Latency(4)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(in_valid_i & ~busy_q), .in_ready_o(admitted), .result_i(result_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );

`ifdef FORMAL
  // Shown by induction, for vocabularies that the unit makes and whatever the sides do: a key is found exactly if the
  // section had it before, and has the index that it got then; indices are given in their order, none twice.
  localparam int unsigned Keys = 2 ** KeyWidth;

  logic [Keys-1:0]          seen_q;   // the keys of the section
  logic [Keys*KeyWidth-1:0] given_q;  // their indices
  logic                     ended_q, past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    assume (!register_write_i && !fixed_q);
    if (!rst_ni || (valid3_q && last3_q)) seen_q <= '0;
    else if (valid3_q && known3_q) seen_q[key3_q] <= 1'b1;
    if (valid3_q && is_new) given_q[KeyWidth*key3_q +: KeyWidth] <= index;
    ended_q <= rst_ni & (ended_q | (valid3_q & last3_q & (count_q > (KeyWidth + 1)'(1))));
    if (past_q && rst_ni) begin
      assert (!(busy_q && issue) && busy_q == valid1_q);
      assert (!(valid1_q && valid2_q) && !(valid2_q && valid3_q));
      if (valid3_q && known3_q) assert (found == seen_q[key3_q] && is_new == !seen_q[key3_q]);
      if (valid3_q && known3_q && seen_q[key3_q]) assert (index == given_q[KeyWidth*key3_q +: KeyWidth]);
      if (valid3_q && is_new) assert (!count_q[KeyWidth]);
      assert (count_q <= (KeyWidth + 1)'(Keys));
      if (before_valid_q) assert (seen_q[before_key_q]);
      if (before_valid_q) assert (before_index_q == given_q[KeyWidth*before_key_q +: KeyWidth]);
      if (valid2_q && known2_q && count_q != '0 && !(before_valid_q && before_key_q == key2_q)) begin
        assert (index2_q == indices_q[key2_q]);
      end
      if (valid3_q && known3_q && count_q != '0 && !again) assert (index3_q == indices_q[key3_q]);
      if (valid3_q) assert (held3_q == keys_q[index3_q]);
      // The proof is not empty: a section found a key that is not the one before, after a section that had several.
      cover (ended_q && valid3_q && found && !again);
    end
  end
  for (genvar key = 0; key < Keys; key++) begin : gen_key
    logic [KeyWidth-1:0] given, held;
    assign given = given_q[KeyWidth*key +: KeyWidth];
    assign held  = keys_q[key];  // by the index `key`
    always_ff @(posedge clk_i) begin
      if (past_q && rst_ni && seen_q[key]) begin
        assert (indices_q[key] == given && keys_q[given] == KeyWidth'(key) && {1'b0, given} < count_q);
      end
      if (past_q && rst_ni && (KeyWidth + 1)'(key) < count_q) begin
        assert (seen_q[held] && given_q[KeyWidth*held +: KeyWidth] == KeyWidth'(key));
      end
    end
  end
`endif
endmodule
