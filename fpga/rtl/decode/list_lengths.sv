// The unit list_lengths: the repetition and definition levels of a column become the lengths of its rows, and say which
// rows and which elements are null. A transfer holds up to 8 pairs of levels.
//
// A pair whose repetition level is 0 begins a row, so a row ends where the next one begins. A result has the rows that
// end within its transfer: the first may have begun long before, the others have fewer than 8 elements. Behind the last
// transfer of a section follows one more result, with the section's last row, if it has a row at all.
//
// A definition level below that of an element says that the row is an empty list, or with a level that is lower still,
// null; such a row has one pair. The section is damaged if its first pair does not begin a row or if a row without
// elements has another pair. The last result tells; what a damaged section's results hold is not defined.
module list_lengths (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [60:0] in_data_i,  // {last, count, definitions, repetitions}

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [85:0] out_data_o  // {damaged, last, elements, present, rows, rows_present, lengths, first_length}
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:6];

  logic [5:0] element_q;   // the definition level of an element, null or not
  logic [5:0] greatest_q;  // that of an element that is not null
  always_ff @(posedge clk_i) begin
    if (register_write_i) begin
      case (register_address_i)
        list_lengths_registers::Element:  element_q  <= register_data_i[5:0];
        list_lengths_registers::Greatest: greatest_q <= register_data_i[5:0];
        default: ;
      endcase
    end
  end

  // Behind the last transfer of a section, a cycle issues the section's last row.
  logic closing_q, issue, admitted;
  assign in_ready_o = admitted & ~closing_q;
  assign issue      = (in_valid_i | closing_q) & admitted;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) closing_q <= 1'b0;
    else if (issue) closing_q <= ~closing_q & in_data_i[60];
  end

  // Cycle 1: what each pair says.
  logic       issued1_q, closing1_q;
  logic [7:0] starts_q, elements_q, present_q, row_present_q, pairs_q;
  for (genvar pair = 0; pair < 8; pair++) begin : gen_pair
    logic       there;
    logic [5:0] definition;
    assign there      = ~closing_q & (4'(pair) < in_data_i[59:56]);
    assign definition = in_data_i[8+6*pair +: 6];
    always_ff @(posedge clk_i) begin
      pairs_q[pair]       <= there;
      starts_q[pair]      <= there & ~in_data_i[pair];
      elements_q[pair]    <= there & (definition >= element_q);
      present_q[pair]     <= definition == greatest_q;
      row_present_q[pair] <= {1'b0, definition} + 7'd1 >= {1'b0, element_q};
    end
  end
  always_ff @(posedge clk_i) begin
    issued1_q  <= rst_ni & issue;
    closing1_q <= closing_q;
  end

  // Cycle 2: how many rows end before each pair and with it, and how many elements lie before it. The first row of a
  // section ends none. Whether a pair that begins no row may be where it is.
  logic       open_q;      // the section has a row
  logic       element_before_q;
  logic [7:0] wrong;
  assign wrong = pairs_q & ~starts_q & ~(elements_q & {elements_q[6:0], open_q & element_before_q});
  logic [7:0]  starts2_q, elements2_q, present2_q, row_present2_q;
  logic [35:0] starts_before, elements_before;  // 4 bits a pair, and behind the last one all
  logic [31:0] starts_before_q, elements_before_q;
  logic [3:0]  all_starts_q, all_elements_q;
  logic        open2_q, closing2_q, issued2_q, wrong_q;
  function automatic logic [3:0] ones_of(input logic [7:0] word);
    ones_of = 4'(word[0]) + 4'(word[1]) + 4'(word[2]) + 4'(word[3]) +
              4'(word[4]) + 4'(word[5]) + 4'(word[6]) + 4'(word[7]);
  endfunction
  for (genvar pair = 0; pair <= 8; pair++) begin : gen_before
    localparam logic [7:0] Before = 8'((9'd1 << pair) - 9'd1);
    assign starts_before[4*pair +: 4]   = ones_of(starts_q & Before);
    assign elements_before[4*pair +: 4] = ones_of(elements_q & Before);
  end
  logic [7:0] last_pairs;  // the pair that no other follows
  assign last_pairs = pairs_q & ~{1'b0, pairs_q[7:1]};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (issued1_q) open_q <= ~closing1_q & (open_q | pairs_q[0]);
    if (issued1_q && pairs_q[0]) element_before_q <= (last_pairs & elements_q) != '0;
    issued2_q         <= rst_ni & issued1_q;
    closing2_q        <= closing1_q;
    open2_q           <= open_q;
    wrong_q           <= wrong != '0;
    starts2_q         <= starts_q;
    elements2_q       <= elements_q;
    present2_q        <= present_q;
    row_present2_q    <= row_present_q;
    starts_before_q   <= starts_before[31:0];
    elements_before_q <= elements_before[31:0];
    all_starts_q      <= starts_before[35:32];
    all_elements_q    <= elements_before[35:32];
  end

  // Cycle 3: the rows that end, by their number in the transfer: the elements before their end, and whether the row
  // that begins there is present. The elements that are present, by their number.
  logic [31:0] ends, ends_q;
  logic [7:0]  begun_present, begun_present_q, packed_present, packed_present_q;
  logic [3:0]  rows_q, all_elements3_q;
  logic        first_present_q;  // of a section's first row, which ends none
  logic        open3_q, closing3_q, issued3_q, wrong3_q;
  for (genvar row = 0; row < 8; row++) begin : gen_row
    logic [7:0] here, element_here;  // the pair that ends row `row`, the pair of element `row`
    for (genvar pair = 0; pair < 8; pair++) begin : gen_match
      assign here[pair]         = starts2_q[pair] & (starts_before_q[4*pair +: 4] == 4'(row) + 4'(!open2_q));
      assign element_here[pair] = elements2_q[pair] & (elements_before_q[4*pair +: 4] == 4'(row));
    end
    always_comb begin
      ends[4*row +: 4] = '0;
      for (int unsigned pair = 0; pair < 8; pair++) begin
        ends[4*row +: 4] = ends[4*row +: 4] | (elements_before_q[4*pair +: 4] & {4{here[pair]}});
      end
    end
    assign begun_present[row]  = (here & row_present2_q) != '0;
    assign packed_present[row] = (element_here & present2_q) != '0;
  end
  always_ff @(posedge clk_i) begin
    issued3_q        <= rst_ni & issued2_q;
    closing3_q       <= closing2_q;
    open3_q          <= open2_q;
    wrong3_q         <= wrong_q;
    ends_q           <= ends;
    begun_present_q  <= begun_present;
    packed_present_q <= packed_present;
    first_present_q  <= row_present2_q[0];
    all_elements3_q  <= all_elements_q;
    rows_q           <= closing2_q ? 4'(open2_q) : all_starts_q - 4'(!open2_q && starts2_q[0]);
  end

  // Cycle 4: lengths from ends, and what goes on to the next transfer: the elements of the row that has not ended, and
  // whether it is present.
  logic [31:0] length_q;
  logic        row_present_before_q, damaged_q;
  logic        begun, damaged, row_present_before;
  logic [7:0]  counted_rows;
  logic [27:0] lengths;
  logic [3:0]  last_end, left;
  logic        last_present;
  logic [85:0] result_q;
  for (genvar row = 1; row < 8; row++) begin : gen_length
    assign lengths[4*row-4 +: 4] = 4'(row) < rows_q ? ends_q[4*row +: 4] - ends_q[4*row-4 +: 4] : '0;
  end
  always_comb begin
    last_end     = '0;
    last_present = 1'b0;
    for (int unsigned row = 0; row < 8; row++) begin
      if (rows_q == 4'(row + 1)) begin
        last_end     = ends_q[4*row +: 4];
        last_present = begun_present_q[row];
      end
    end
  end
  assign left               = all_elements3_q - last_end;
  assign counted_rows       = 8'((9'd1 << rows_q) - 9'd1);
  assign begun              = rows_q != '0;
  assign damaged            = damaged_q | wrong3_q;
  assign row_present_before = open3_q ? row_present_before_q : first_present_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      length_q  <= '0;
      damaged_q <= 1'b0;
    end else if (issued3_q) begin
      damaged_q <= ~closing3_q & damaged;
      length_q  <= (begun ? '0 : length_q) + 32'(left);
    end
    if (issued3_q) row_present_before_q <= begun ? last_present : row_present_before;
    result_q <= {
      damaged, closing3_q, all_elements3_q, packed_present_q, rows_q,
      {begun_present_q[6:0], row_present_before} & counted_rows, lengths,
      begun ? length_q + 32'(ends_q[3:0]) : 32'd0
    };
  end

  stream_credit_pipe #(.Width(86), .Latency(4)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(in_valid_i | closing_q), .in_ready_o(admitted), .result_i(result_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );

`ifdef FORMAL
  // Shown by induction, whatever the sides do: the pipeline gets each transfer once and one cycle more for each
  // section, which follows the section's last transfer at once, and the results of these cycles alone are marked last.
  localparam int unsigned NumberWidth = 4;

  logic [NumberWidth-1:0] taken_q;   // transfers
  logic [NumberWidth-1:0] ended_q;   // last transfers
  logic [NumberWidth-1:0] issued_q;  // cycles that the pipeline got
  logic [NumberWidth-1:0] closed_q;  // those behind a last transfer
  logic [NumberWidth-1:0] marked_q;  // results that are marked
  logic                   issued4_q;
  logic                   after_last_q;
  logic                   waited_q;
  logic                   past_q;
  logic                   taken, marked;
  assign taken  = in_valid_i & in_ready_o;
  assign marked = issued4_q & result_q[84];
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    taken_q   <= rst_ni ? taken_q + NumberWidth'(taken) : '0;
    ended_q   <= rst_ni ? ended_q + NumberWidth'(taken & in_data_i[60]) : '0;
    issued_q  <= rst_ni ? issued_q + NumberWidth'(issue) : '0;
    closed_q  <= rst_ni ? closed_q + NumberWidth'(issue & closing_q) : '0;
    marked_q  <= rst_ni ? marked_q + NumberWidth'(marked) : '0;
    issued4_q <= rst_ni & issued3_q;
    waited_q  <= rst_ni & (waited_q | (closing_q & ~admitted));
    if (!rst_ni) after_last_q <= 1'b0;
    else if (issue) after_last_q <= taken & in_data_i[60];
    if (past_q && rst_ni) begin
      assert (issued_q == taken_q + closed_q);
      assert (ended_q == closed_q + NumberWidth'(closing_q));
      assert (closing_q == after_last_q);
      assert (closed_q == marked_q + NumberWidth'(issued1_q & closing1_q) + NumberWidth'(issued2_q & closing2_q) +
                          NumberWidth'(issued3_q & closing3_q) + NumberWidth'(marked));
      // The proof is not empty: the cycle of a last row had to wait, and another section followed.
      cover (waited_q && marked_q == NumberWidth'(2));
    end
  end
`endif
endmodule
