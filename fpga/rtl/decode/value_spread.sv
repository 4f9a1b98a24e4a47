// The values of a section, one a cycle, each in the place of its row.
//
// The input is that of plain_decoder and dictionary_gather: up to 4 values a transfer. A memory says which rows are
// null; a row that is null takes no value of the section. The section is done when rows_i rows have left and the
// input's last transfer has come. It is damaged if its input is, or holds fewer values than rows that are not null, or
// more. A section that is damaged and whose last transfer has come is done at once.
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
  // The transfer that is spread, the lane of its next value, and the transfer behind it. That one may come before it is
  // known whether the first leaves, so that no path leads from out_ready_i to in_ready_o.
  logic         full_q, behind_full_q;
  logic [260:0] held_q, behind_q;
  logic [2:0]   lane_q;
  logic [2:0]   count;
  logic         last;
  logic         has_value;
  assign count     = held_q[258:256];
  assign last      = held_q[259];
  assign has_value = full_q & (lane_q < count);

  logic [31:0] row_q;
  logic        begins_q;     // row_q is 0
  logic        rows_done_q;  // row_q is rows_i
  logic [31:0] last_row_q;   // rows_i - 1
  logic        closed_q;     // the last transfer came
  logic        ended_q;      // the last transfer is spread
  logic        damaged_q;
  logic        absent;
  logic        advance;
  logic        take;
  logic        leave;
  logic        push;
  logic        move;         // the next transfer is the one that is spread
  assign advance   = out_valid_o & out_ready_i;
  assign take      = advance & ~absent;
  assign leave     = full_q & (~has_value | rows_done_q | (take & (lane_q + 3'd1 == count)));

  // The rows of a section wait for its first transfer, also those that are null.
  assign out_valid_o   = ~rows_done_q & ~(ended_q & damaged_q) & (absent ? full_q | ended_q : has_value);
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

  assign in_ready_o = ~behind_full_q & ~closed_q;
  assign push       = in_valid_i & in_ready_o;
  assign move       = ~full_q | leave;
  assign done_o     = ended_q & (rows_done_q | damaged_q);
  assign damaged_o  = damaged_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q        <= 1'b0;
      behind_full_q <= 1'b0;
      closed_q      <= 1'b0;
      ended_q       <= 1'b0;
      damaged_q     <= 1'b0;
    end else begin
      full_q        <= push | behind_full_q | (full_q & ~leave);
      behind_full_q <= (push | behind_full_q) & ~move;
      closed_q      <= ~next_i & (closed_q | (push & in_data_i[259]));
      ended_q       <= ~next_i & (ended_q | (leave & last));
      damaged_q     <= ~next_i & (damaged_q | (leave & held_q[260]) | (has_value & rows_done_q) |
                                  (ended_q & ~rows_done_q & ~absent));
    end
  end
  always_ff @(posedge clk_i) begin
    if (!behind_full_q) behind_q <= in_data_i;
    if (move) begin
      held_q <= behind_full_q ? behind_q : in_data_i;
      lane_q <= '0;
    end else if (take) begin
      lane_q <= lane_q + 3'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || next_i) begin
      row_q    <= '0;
      begins_q <= 1'b1;
    end else if (advance) begin
      row_q    <= row_q + 32'd1;
      begins_q <= 1'b0;
    end
    last_row_q <= rows_i - 32'd1;
    if (next_i) rows_done_q <= rows_i == '0;
    else if (advance) rows_done_q <= row_q == last_row_q;
    else rows_done_q <= row_q == rows_i;
  end

  // The bits of a word are moved down from row to row, while the next word is read; those of the first word are kept
  // beside the memory, so that a section begins at once.
  logic [63:0] presence_q [PresenceWords];
  logic [63:0] first_q;  // the memory's first word
  logic [63:0] word_q;   // the word behind the row's
  logic [63:0] bits_q;   // of the row and those behind it in its word, if it is not row 0
  logic [63:0] bits;
  logic [AddressWidth-1:0] next_word;
  assign bits      = begins_q ? first_q : bits_q;
  assign absent    = nullable_i & ~bits[0];
  assign next_word = row_q[AddressWidth+5:6] + 1'b1;
  always_ff @(posedge clk_i) begin
    if (presence_write_i) presence_q[presence_address_i] <= presence_data_i;
    if (presence_write_i && presence_address_i == '0) first_q <= presence_data_i;
    word_q <= presence_q[next_word];
    if (advance) bits_q <= (row_q[5:0] == '1) ? word_q : bits >> 1;
  end

`ifdef FORMAL
  // Shown by induction, whatever the sides do: the values of a section go to the rows that are not null, each once and
  // in their order; a row is null exactly if the memory says so; and damaged_o is 1 exactly for a section that is done
  // and had a transfer marked as damaged, more values than rows for them, or fewer. A row that waits stays as it is.
  //
  // The values of a section are numbered. A reset lasts two cycles or more. The memory holds anything, its first word
  // twice, and nothing is written into it.
  localparam int unsigned NumberWidth = 4;

  logic [NumberWidth-1:0] come_q;          // values of the section that came
  logic [NumberWidth-1:0] gone_q;          // values that went to rows
  logic [NumberWidth-1:0] held_first_q;    // number of the held transfer's first value
  logic [NumberWidth-1:0] behind_first_q;  // number of the first value of the transfer behind it
  logic [31:0]            rows_q;          // rows that left
  logic                   more_q;          // values were left over
  logic                   marked_q;        // a transfer was marked as damaged
  logic                   waited_q;
  logic [NumberWidth:0]   waiting_q;
  logic                   empty_q;         // the transfer that left had no value
  logic [31:0]            section_rows_q;
  logic                   section_nullable_q;
  logic                   nulls_q;         // a row of the section was null
  logic                   stalled_q;       // a transfer of the section waited
  logic                   reset_q;
  logic                   reset_before_q;
  logic                   past_q;
  initial past_q         = 1'b0;
  initial reset_q        = 1'b0;
  initial reset_before_q = 1'b0;

  logic       bit_of_row;
  logic [2:0] behind_count;
  assign behind_count = behind_q[258:256];
  assign bit_of_row   = ~nullable_i | presence_q[row_q[AddressWidth+5:6]][row_q[5:0]];
  always_ff @(posedge clk_i) begin
    past_q         <= 1'b1;
    reset_q        <= ~rst_ni;
    reset_before_q <= reset_q;
    if (!past_q || (reset_q && !reset_before_q)) assume (!rst_ni);
    assume (!presence_write_i);
    assume (first_q == presence_q[0]);
    section_rows_q     <= rows_i;
    section_nullable_q <= nullable_i;
    if (rst_ni) assume (rows_i == section_rows_q && nullable_i == section_nullable_q);
    assume (in_data_i[258:256] <= 3'd4);
    assume (done_o || !next_i);

    come_q    <= rst_ni & ~next_i ? come_q + (push ? NumberWidth'(in_data_i[258:256]) : '0) : '0;
    gone_q    <= rst_ni & ~next_i ? gone_q + NumberWidth'(advance & out_present_o) : '0;
    rows_q    <= rst_ni & ~next_i ? rows_q + 32'(advance) : '0;
    more_q    <= rst_ni & ~next_i & (more_q | (leave & (lane_q + 3'(take) != count)));
    marked_q  <= rst_ni & ~next_i & (marked_q | (push & in_data_i[260]));
    nulls_q   <= rst_ni & ~next_i & (nulls_q | (advance & ~out_present_o));
    stalled_q <= rst_ni & ~next_i & (stalled_q | (in_valid_i & ~in_ready_o & ~closed_q));
    waited_q  <= rst_ni & out_valid_o & ~out_ready_i;
    waiting_q <= {out_present_o, out_value_o[NumberWidth-1:0]};
    empty_q   <= leave & ~has_value;
    if (move) held_first_q <= behind_full_q ? behind_first_q : come_q;
    if (push) behind_first_q <= come_q;

    if (past_q && rst_ni) begin
      assert (begins_q || bits_q == presence_q[row_q[AddressWidth+5:6]] >> row_q[5:0]);
      assert (row_q[5:0] == '0 || word_q == presence_q[next_word]);
      assert (row_q == rows_q && row_q <= rows_i);
      assert (begins_q == (row_q == '0) && rows_done_q == (row_q == rows_i) && last_row_q == rows_i - 32'd1);
      if (full_q) assert (lane_q <= count && count <= 3'd4 && !ended_q);
      if (full_q && !behind_full_q) assert (come_q == held_first_q + NumberWidth'(count));
      if (behind_full_q) begin
        assert (full_q && !last && behind_count <= 3'd4);
        assert (behind_first_q == held_first_q + NumberWidth'(count));
        assert (come_q == behind_first_q + NumberWidth'(behind_count));
      end
      if (full_q && !more_q) assert (gone_q == held_first_q + NumberWidth'(lane_q));
      if (!full_q && !more_q) assert (gone_q == come_q);
      if (more_q) assert (rows_done_q && damaged_q);
      assert (closed_q == (ended_q || (full_q && last) || (behind_full_q && behind_q[259])));
      if (marked_q) assert (damaged_q || (full_q && held_q[260]) || (behind_full_q && behind_q[260]));
      if ((full_q && held_q[260]) || (behind_full_q && behind_q[260])) assert (marked_q);

      // What leaves.
      if (out_valid_o) assert (!rows_done_q && out_present_o == bit_of_row);
      if (out_valid_o && out_present_o) assert (out_value_o[NumberWidth-1:0] == gone_q);
      if (waited_q) assert (out_valid_o || (ended_q && damaged_q) || empty_q);
      if (waited_q && out_valid_o) assert (waiting_q == {out_present_o, out_value_o[NumberWidth-1:0]});
      if (done_o && !damaged_o) assert (closed_q && rows_q == rows_i && come_q == gone_q && !more_q && !marked_q);
      if (damaged_o) assert (marked_q || more_q || (ended_q && rows_q != rows_i && bit_of_row));

      // The proof is not empty.
      cover (done_o && !damaged_o && nulls_q && stalled_q && gone_q == NumberWidth'(6));
      cover (done_o && damaged_o && !marked_q && !more_q);
      cover (done_o && more_q && !marked_q);
    end
  end
  for (genvar lane = 0; lane < 4; lane++) begin : gen_numbers
    always_ff @(posedge clk_i) begin
      assume (in_data_i[64*lane +: NumberWidth] == come_q + NumberWidth'(lane));
      if (past_q && rst_ni && full_q) begin
        assert (held_q[64*lane +: NumberWidth] == held_first_q + NumberWidth'(lane));
      end
      if (past_q && rst_ni && behind_full_q) begin
        assert (behind_q[64*lane +: NumberWidth] == behind_first_q + NumberWidth'(lane));
      end
    end
  end
`endif
endmodule
