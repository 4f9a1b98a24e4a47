// The values of a section, one a cycle, each in the place of its row.
//
// The input is that of plain_decoder and dictionary_gather: up to 4 values a transfer. A memory says which rows are
// null; a row that is null takes no value of the section. The section is done when rows_i rows have left and the input's
// last transfer has come. It is damaged if its input is, or holds fewer values than rows that are not null, or more. A
// section that is damaged and whose last transfer has come is done at once.
module value_spread #(
  parameter int unsigned PresenceWords = 4096,  // of 64 rows each, a power of two
  localparam int unsigned AddressWidth = $clog2(PresenceWords)
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [31:0]  rows_i,
  input  logic         nullable_i,  // 0: no row is null
  input  logic         presence_write_i,
  input  logic [AddressWidth-1:0] presence_address_i,
  input  logic [63:0]  presence_data_i,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [260:0] in_data_i,  // {damaged, last, count, values}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [63:0]  out_value_o,
  output logic         out_present_o,

  output logic         done_o,     // until next_i
  output logic         damaged_o,  // of a section that is done
  input  logic         next_i      // the next section begins
);
  // A transfer that is spread, and the lane of its next value.
  logic         full_q;
  logic [260:0] held_q;
  logic [2:0]   lane_q;
  logic [2:0]   count;
  logic         last;
  logic         has_value;
  assign count     = held_q[258:256];
  assign last      = held_q[259];
  assign has_value = full_q & (lane_q < count);

  logic [31:0] row_q;
  logic        ended_q;    // the last transfer is spread
  logic        damaged_q;
  logic        rows_done;
  logic        absent;
  logic        advance;
  logic        take;
  logic        leave;
  assign rows_done = row_q == rows_i;
  assign advance   = out_valid_o & out_ready_i;
  assign take      = advance & ~absent;
  assign leave     = full_q & (~has_value | rows_done | (take & (lane_q + 3'd1 == count)));

  // The rows of a section wait for its first transfer, also those that are null.
  assign out_valid_o   = ~rows_done & ~(ended_q & damaged_q) & (absent ? full_q | ended_q : has_value);
  assign out_present_o = ~absent;
  always_comb begin
    case (lane_q[1:0])
      2'd0:    out_value_o = held_q[63:0];
      2'd1:    out_value_o = held_q[127:64];
      2'd2:    out_value_o = held_q[191:128];
      default: out_value_o = held_q[255:192];
    endcase
    if (absent) out_value_o = '0;
  end

  assign in_ready_o = ~ended_q & (~full_q | (leave & ~last));
  assign done_o     = ended_q & (rows_done | damaged_q);
  assign damaged_o  = damaged_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q    <= 1'b0;
      row_q     <= '0;
      ended_q   <= 1'b0;
      damaged_q <= 1'b0;
    end else begin
      full_q    <= (in_valid_i & in_ready_o) | (full_q & ~leave);
      row_q     <= next_i ? '0 : row_q + 32'(advance);
      ended_q   <= ~next_i & (ended_q | (leave & last));
      damaged_q <= ~next_i & (damaged_q | (leave & held_q[260]) | (has_value & rows_done) |
                              (ended_q & ~rows_done & ~absent));
    end
  end
  always_ff @(posedge clk_i) begin
    if (in_valid_i & in_ready_o) begin
      held_q <= in_data_i;
      lane_q <= '0;
    end else begin
      lane_q <= lane_q + 3'(take);
    end
  end

  // The word of the next cycle's row is read in each cycle.
  logic [63:0] presence_q [PresenceWords];
  logic [63:0] word_q;
  logic [31:0] row_next;
  assign row_next = next_i ? '0 : row_q + 32'(advance);
  always_ff @(posedge clk_i) begin
    if (presence_write_i) presence_q[presence_address_i] <= presence_data_i;
    word_q <= presence_q[row_next[AddressWidth+5:6]];
  end
  assign absent = nullable_i & ~word_q[row_q[5:0]];

  logic unused_row;
  assign unused_row = ^row_next[31:AddressWidth+6] ^ ^row_next[5:0];
endmodule
