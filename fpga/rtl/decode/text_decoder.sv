// The unit text_decoder: lines of Criteo's text become values, 4 bytes a cycle whatever the text is.
//
// A line is a label and 13 numbers in decimal, and 26 in hexadecimal digits, with tabs between them. It ends with LF,
// of which one CR before it is a part, or with the section; an empty line is no row. What a cell may hold is in
// text_numbers.sv.
//
// Every transfer makes one result. Each byte of the transfer that ends a cell, a tab or an LF, has a value in the
// result; at most all 4 bytes do, so that a result has a place for each. Where a section ends without LF, the byte
// behind its last one ends the cell, in a result of its own if the last transfer is full. A cell that is malformed has
// no value; the byte that ends a line says what was wrong with it. Which rows are kept is for those to decide who read
// the results: a row's first values have left before its last byte comes.
module text_decoder (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         register_write_i,
  input  logic [15:0]  register_address_i,
  input  logic [63:0]  register_data_i,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [35:0] in_data_i,  // {last, bytes, data}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [177:0] out_data_o  // {last, skipped, ends, fields, malformed, present, kept, values}
);
  localparam int unsigned Stages = 13;
  localparam logic [5:0] LastField   = 6'd39;
  localparam logic [5:0] LastDecimal = 6'd13;

  logic unused_bits;
  assign unused_bits = ^register_data_i[63:1];

  logic label_absent_q, begins_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        text_decoder_registers::LabelAbsent: label_absent_q <= register_data_i[0];
        text_decoder_registers::Begins:      begins_q       <= register_data_i[0];
        default: ;
      endcase
    end
  end

  // Behind a last transfer that is full, a cycle issues the end of the section.
  logic closing_q, issue, admitted, full, section_ends;
  assign in_ready_o   = admitted & ~closing_q;
  assign issue        = (in_valid_i | closing_q) & admitted;
  assign full         = in_data_i[34];
  assign section_ends = closing_q | (in_data_i[35] & ~full);
  logic first_q;  // the next transfer begins a section
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      closing_q <= 1'b0;
      first_q   <= 1'b1;
    end else if (issue) begin
      closing_q <= ~closing_q & in_data_i[35] & full;
      first_q   <= section_ends;
    end
  end

  // Bit k of these tells of the transfer that was issued k + 1 cycles ago.
  logic [Stages-2:0] issued_q, last_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) issued_q <= '0;
    else issued_q <= {issued_q[Stages-3:0], issue};
    last_q <= {last_q[Stages-3:0], section_ends};
  end

  // Cycle 1: what each byte is. The end of a section without LF is one byte more.
  logic [3:0]  there_q, end_q, number_q, letter_q, minus_q, return_q, tab_q, feed_q;
  logic [15:0] nibbles_q;
  logic [2:0]  mark_q;
  logic        first1_q;
  for (genvar place = 0; place < 4; place++) begin : gen_class
    logic [7:0] character;
    logic       letter, number;
    assign character = in_data_i[8*place +: 8];
    assign letter    = (character[7:6] == 2'b01) & (character[4:3] == 2'b00) &
                       (character[2:0] != 3'd0) & (character[2:0] != 3'd7);
    assign number    = (character[7:4] == 4'h3) & (character[3:0] <= 4'd9);
    always_ff @(posedge clk_i) begin
      there_q[place]  <= ~closing_q & (3'(place) < in_data_i[34:32]);
      number_q[place] <= number;
      letter_q[place] <= letter;
      minus_q[place]  <= character == 8'h2d;
      return_q[place] <= character == 8'h0d;
      tab_q[place]    <= character == 8'h09;
      feed_q[place]   <= character == 8'h0a;
      nibbles_q[4*place +: 4] <= letter ? 4'd9 + {1'b0, character[2:0]} : number ? character[3:0] : '0;
    end
    if (place == 0) begin : gen_end
      always_ff @(posedge clk_i) end_q[0] <= closing_q | (section_ends & (in_data_i[33:32] == 2'd0));
    end else begin : gen_end_behind
      always_ff @(posedge clk_i) end_q[place] <= ~closing_q & section_ends & (in_data_i[33:32] == 2'(place));
    end
  end
  always_ff @(posedge clk_i) begin
    mark_q   <= {in_data_i[23:16] == 8'hbf, in_data_i[15:8] == 8'hbb, in_data_i[7:0] == 8'hef};
    first1_q <= first_q;
  end

  // Cycle 2: the bytes of cells, and those that end cells.
  logic        skipped;
  logic [3:0]  content, content2_q, ends_cell2_q, newline2_q, end2_q, return2_q;
  logic [3:0]  number2_q, digit2_q, minus2_q;
  logic [15:0] nibbles2_q;
  logic        skipped2_q;
  assign skipped = first1_q & begins_q & (&mark_q) & there_q[2];
  assign content = there_q & ~tab_q & ~feed_q & {1'b1, {3{~skipped}}};
  always_ff @(posedge clk_i) begin
    content2_q   <= content;
    ends_cell2_q <= (there_q & (tab_q | feed_q)) | end_q;
    newline2_q   <= (there_q & feed_q) | end_q;
    end2_q       <= end_q;
    return2_q    <= content & return_q;
    number2_q    <= content & number_q;
    digit2_q     <= content & (number_q | letter_q);
    minus2_q     <= content & minus_q;
    nibbles2_q   <= nibbles_q;
    skipped2_q   <= skipped;
  end

  // Cycle 3: what the transfer alone says of the cell that each byte belongs to, and of the line.
  logic [3:0]  open, begins_cell, wrong_decimal, wrong_hex, wrong_decimal3_q, wrong_hex3_q, negative, negative3_q;
  logic        content_left_q;  // the last byte of the transfer before is one of a cell
  logic [11:0] counts, counts3_q;
  logic [7:0]  tabs, tabs3_q;
  logic [3:0]  same_line, same_line3_q, open3_q;
  logic [3:0]  ends_cell3_q, newline3_q, end3_q, return3_q;
  logic [15:0] nibbles3_q;
  logic        skipped3_q;
  assign begins_cell = content2_q & ~{content2_q[2:0], content_left_q};
  for (genvar place = 0; place < 4; place++) begin : gen_scan
    logic [3:0] run;     // the bytes up to here that belong to the cell
    logic [3:0] behind;  // those before, behind the last newline
    for (genvar other = 0; other < 4; other++) begin : gen_run
      if (other <= place) begin : gen_within
        assign run[other] = &content2_q[place:other];
      end else begin : gen_after
        assign run[other] = 1'b0;
      end
      if (other < place) begin : gen_before
        assign behind[other] = newline2_q[place-1:other] == '0;
      end else begin : gen_not_before
        assign behind[other] = 1'b0;
      end
    end
    logic [3:0] tabs_behind;
    assign tabs_behind              = behind & ends_cell2_q;
    assign open[place]              = run[0];
    assign counts[3*place +: 3]     = {2'b0, run[0]} + {2'b0, run[1]} + {2'b0, run[2]} + {2'b0, run[3]};
    assign tabs[2*place +: 2]       = {1'b0, tabs_behind[0]} + {1'b0, tabs_behind[1]} + {1'b0, tabs_behind[2]};
    assign wrong_decimal[place]     = (run & ~number2_q & ~(minus2_q & begins_cell)) != '0;
    assign wrong_hex[place]         = (run & ~digit2_q) != '0;
    assign negative[place]          = (run & minus2_q & begins_cell) != '0;
    if (place == 0) begin : gen_line_goes_on
      assign same_line[0] = 1'b1;
    end else begin : gen_line
      assign same_line[place] = newline2_q[place-1:0] == '0;
    end
    logic unused_tab;
    assign unused_tab = tabs_behind[3];
  end
  logic       all_same3_q;    // no line ends
  logic [2:0] tabs_after3_q;  // in the line that goes on with the next transfer
  logic [3:0] past3_q;        // the bytes behind the place where that line begins, if one ends
  always_ff @(posedge clk_i) begin
    if (!rst_ni) content_left_q <= 1'b0;
    else if (issued_q[1]) content_left_q <= content2_q[3];
    open3_q          <= open;
    counts3_q        <= counts;
    wrong_decimal3_q <= wrong_decimal;
    wrong_hex3_q     <= wrong_hex;
    negative3_q      <= negative;
    tabs3_q          <= tabs;
    same_line3_q     <= same_line;
    ends_cell3_q     <= ends_cell2_q;
    newline3_q       <= newline2_q;
    end3_q           <= end2_q;
    return3_q        <= return2_q;
    nibbles3_q       <= nibbles2_q;
    skipped3_q       <= skipped2_q;
    all_same3_q      <= newline2_q == '0;
    if (newline2_q[3]) begin
      tabs_after3_q <= '0;
      past3_q       <= 4'b1110;
    end else begin
      tabs_after3_q <= {1'b0, tabs[7:6]} + {2'b0, ends_cell2_q[3]};
      past3_q       <= newline2_q[2] ? 4'b0000 : newline2_q[1] ? 4'b1000 : 4'b1100;
    end
  end

  // Cycle 4: the same with what the transfers before left: the bytes that the cell has, at most 15 and no more from 12
  // on, and what is wrong with them; the tabs of the line, no more from 40 on; and where the line began, as the
  // transfers since then, no more than 16385, and the bytes behind its place in that transfer. A line has more than
  // 65536 bytes where it ends 16384 transfers later at such a byte, or 16385 transfers later.
  logic [3:0]  count_q;
  logic        wrong_decimal_q, wrong_hex_q, negative_q;
  logic [5:0]  line_tabs_q;
  logic [14:0] line_transfers_q;
  logic [3:0]  line_past_q;
  logic [15:0] counts4, counts4_q, nibbles4_q;
  logic [3:0]  wrong_decimal4, wrong_decimal4_q, wrong_hex4, wrong_hex4_q, negative4, negative4_q, decimal4_q;
  logic [3:0]  long4_q;
  logic [23:0] fields4_q;
  logic [3:0]  no_tab4_q;
  for (genvar place = 0; place < 4; place++) begin : gen_sum
    logic [5:0] line_tabs, field;
    assign counts4[4*place +: 4]  = !open3_q[place] ? {1'b0, counts3_q[3*place +: 3]} :
                                    (count_q >= 4'd12) ? 4'd12 : count_q + 4'(place + 1);
    assign wrong_decimal4[place]  = wrong_decimal3_q[place] | (open3_q[place] & wrong_decimal_q);
    assign wrong_hex4[place]      = wrong_hex3_q[place] | (open3_q[place] & wrong_hex_q);
    assign negative4[place]       = negative3_q[place] | (open3_q[place] & negative_q);
    assign line_tabs              = {4'b0, tabs3_q[2*place +: 2]} + (same_line3_q[place] ? line_tabs_q : 6'd0);
    assign field                  = line_tabs + {5'b0, label_absent_q};
    always_ff @(posedge clk_i) begin
      fields4_q[6*place +: 6] <= (field > LastField) ? LastField + 6'd1 : field;
      decimal4_q[place]       <= field <= LastDecimal;
      no_tab4_q[place]        <= line_tabs == '0;
      long4_q[place]          <= same_line3_q[place] & ((line_transfers_q > 15'd16384) |
                                 ((line_transfers_q == 15'd16384) & line_past_q[place]));
    end
  end
  logic [3:0] ends_cell4_q, newline4_q, end4_q, return4_q;
  logic       skipped4_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_tabs_q      <= '0;
      line_transfers_q <= '0;
      line_past_q      <= 4'b1110;
    end else if (issued_q[2]) begin
      if (last_q[2]) begin
        line_tabs_q      <= '0;
        line_transfers_q <= '0;
        line_past_q      <= 4'b1110;
      end else if (!all_same3_q) begin
        line_tabs_q      <= {3'b0, tabs_after3_q};
        line_transfers_q <= {14'b0, ~past3_q[1]};
        line_past_q      <= past3_q;
      end else begin
        if (line_tabs_q < 6'd40) line_tabs_q <= line_tabs_q + {3'b0, tabs_after3_q};
        if (skipped3_q) begin
          line_transfers_q <= 15'd1;
          line_past_q      <= 4'b0000;
        end else if (line_transfers_q <= 15'd16384) begin
          line_transfers_q <= line_transfers_q + 15'd1;
        end
      end
    end
    if (!rst_ni) begin
      count_q         <= '0;
      wrong_decimal_q <= 1'b0;
      wrong_hex_q     <= 1'b0;
      negative_q      <= 1'b0;
    end else if (issued_q[2]) begin
      count_q         <= counts4[15:12];
      wrong_decimal_q <= wrong_decimal4[3];
      wrong_hex_q     <= wrong_hex4[3];
      negative_q      <= negative4[3];
    end
    counts4_q        <= counts4;
    wrong_decimal4_q <= wrong_decimal4;
    wrong_hex4_q     <= wrong_hex4;
    negative4_q      <= negative4;
    nibbles4_q       <= nibbles3_q;
    ends_cell4_q     <= ends_cell3_q;
    newline4_q       <= newline3_q;
    end4_q           <= end3_q;
    return4_q        <= return3_q;
    skipped4_q       <= skipped3_q;
  end

  // Cycles 5 to 11: numbers.
  logic [127:0] values11;
  logic [3:0]   empty11, wrong11;
  text_numbers u_numbers (
    .clk_i, .issued_i(issued_q[5:3]), .digits_i(nibbles4_q), .counts_i(counts4_q), .decimal_i(decimal4_q),
    .negative_i(negative4_q), .wrong_decimal_i(wrong_decimal4_q), .wrong_hex_i(wrong_hex4_q),
    .values_o(values11), .empty_o(empty11), .wrong_o(wrong11)
  );
  logic [3:0]  ends_cell11, newline11, end11, return11, no_tab11, long11;
  logic [23:0] fields11;
  logic        skipped11;
  delay_line #(.Width(49), .Cycles(7)) u_places (
    .clk_i,
    .data_i({skipped4_q, fields4_q, long4_q, no_tab4_q, return4_q, end4_q, newline4_q, ends_cell4_q}),
    .data_o({skipped11, fields11, long11, no_tab11, return11, end11, newline11, ends_cell11})
  );

  // Cycles 12 and 13: the cells and lines that bytes end.
  logic [127:0] values13;
  logic [3:0]   kept13, present13, malformed13;
  logic [23:0]  fields13;
  logic [11:0]  ends13;
  logic         skipped12_q, skipped13_q, last13_q;
  text_lines u_lines (
    .clk_i, .rst_ni, .issued_i(issued_q[11:10]), .values_i(values11), .empty_i(empty11), .wrong_i(wrong11),
    .ends_cell_i(ends_cell11), .newline_i(newline11), .end_i(end11), .return_i(return11), .no_tab_i(no_tab11),
    .long_i(long11), .fields_i(fields11), .values_o(values13), .kept_o(kept13), .present_o(present13),
    .malformed_o(malformed13), .fields_o(fields13), .ends_o(ends13)
  );
  always_ff @(posedge clk_i) begin
    skipped12_q <= skipped11;
    skipped13_q <= skipped12_q;
    last13_q    <= last_q[Stages-2];
  end

  stream_credit_pipe #(.Width(178), .Latency(Stages)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(in_valid_i | closing_q), .in_ready_o(admitted),
    .result_i({last13_q, skipped13_q, ends13, fields13, malformed13, present13, kept13, values13}),
    .out_valid_o, .out_ready_i, .out_data_o
  );

`ifdef FORMAL
  // Shown by induction, whatever the sides do: the pipeline gets each transfer once, and behind a section whose last
  // transfer is full one cycle more, which follows at once; every section has one result that is marked last.
  localparam int unsigned NumberWidth = 5;

  logic [NumberWidth-1:0] taken_q;    // transfers
  logic [NumberWidth-1:0] ended_q;    // last transfers
  logic [NumberWidth-1:0] issued_n_q;  // cycles that the pipeline got
  logic [NumberWidth-1:0] closed_q;   // those behind a last transfer
  logic [NumberWidth-1:0] marked_q;   // results that are marked
  logic [NumberWidth-1:0] marks_under_way;
  logic                   after_full_q;
  logic                   waited_q;
  logic                   past_q;
  logic                   issued_last_q;
  logic                   taken, marked;
  assign taken  = in_valid_i & in_ready_o;
  assign marked = issued_last_q & last13_q;
  always_comb begin
    marks_under_way = '0;
    for (int unsigned k = 0; k < Stages - 1; k++) begin
      marks_under_way = marks_under_way + NumberWidth'(issued_q[k] & last_q[k]);
    end
  end
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    taken_q    <= rst_ni ? taken_q + NumberWidth'(taken) : '0;
    ended_q    <= rst_ni ? ended_q + NumberWidth'(taken & in_data_i[35]) : '0;
    issued_n_q <= rst_ni ? issued_n_q + NumberWidth'(issue) : '0;
    closed_q   <= rst_ni ? closed_q + NumberWidth'(issue & closing_q) : '0;
    marked_q   <= rst_ni ? marked_q + NumberWidth'(marked) : '0;
    issued_last_q <= rst_ni & issued_q[Stages-2];
    waited_q   <= rst_ni & (waited_q | (closing_q & ~admitted));
    if (!rst_ni) after_full_q <= 1'b0;
    else if (issue) after_full_q <= taken & in_data_i[35] & in_data_i[34];
    if (past_q && rst_ni) begin
      assert (issued_n_q == taken_q + closed_q);
      assert (closing_q == after_full_q);
      assert (ended_q == marked_q + marks_under_way + NumberWidth'(marked) + NumberWidth'(closing_q));
      // The proof is not empty: the end of a section had to wait, and came.
      cover (waited_q && closed_q == NumberWidth'(1));
    end
  end
`endif
endmodule
