// Gives the bytes of text that end a cell its number, and those that end a line what is wrong with the line.
//
// A byte that ends a cell takes the number of the byte before it or, if that is a CR that belongs to the LF, of the
// byte before the CR. The last two numbers of the transfer before are kept for it.
//
// The results come 2 cycles after the numbers.
module text_lines (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [1:0]   issued_i,     // bit k: the cycle k cycles ago had a transfer
  input  logic [127:0] values_i,     // of each byte the number that its cell would be if it ended there
  input  logic [3:0]   empty_i,      // 1: the cell has no byte there
  input  logic [3:0]   wrong_i,      // 1: the cell is no number there
  input  logic [3:0]   ends_cell_i,
  input  logic [3:0]   newline_i,    // 1: the byte ends a line
  input  logic [3:0]   end_i,        // 1: it is the section's end, and no LF
  input  logic [3:0]   return_i,     // 1: it is a CR
  input  logic [3:0]   no_tab_i,     // 1: no tab of the line is before it
  input  logic [3:0]   long_i,       // 1: more than 65536 bytes of the line are before it
  input  logic [23:0]  fields_i,

  output logic [127:0] values_o,
  output logic [3:0]   kept_o,
  output logic [3:0]   present_o,
  output logic [3:0]   malformed_o,
  output logic [23:0]  fields_o,
  output logic [11:0]  ends_o
);
  localparam logic [5:0] LastField = 6'd39;
  localparam logic [2:0] GoesOn        = 3'd0;
  localparam logic [2:0] Good          = 3'd1;
  localparam logic [2:0] MalformedCell = 3'd2;
  localparam logic [2:0] FieldCount    = 3'd3;
  localparam logic [2:0] TooLong       = 3'd4;
  localparam logic [2:0] Empty         = 3'd5;

  // Cycle 1: cells.
  logic [63:0]  values_left_q;
  logic [1:0]   empty_left_q, wrong_left_q;
  logic         return_left_q;
  logic [191:0] values_before;  // of the 2 bytes before the transfer, and of its bytes
  logic [5:0]   empty_before, wrong_before;
  logic [4:0]   return_before;  // of one byte before, and of its bytes
  assign values_before = {values_i, values_left_q};
  assign empty_before  = {empty_i, empty_left_q};
  assign wrong_before  = {wrong_i, wrong_left_q};
  assign return_before = {return_i, return_left_q};
  logic unused_before;
  assign unused_before = ^{values_before[191:160], empty_before[5], wrong_before[5], return_before[4]};
  logic [127:0] values_q;
  logic [3:0]   kept_q, present_q, malformed_q, newline_q;
  logic [11:0]  ends_q;  // what is known of the line without its cells
  logic [23:0]  fields_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      return_left_q <= 1'b0;
      empty_left_q  <= '1;
      wrong_left_q  <= '0;
    end else if (issued_i[0]) begin
      return_left_q <= return_i[3];
      empty_left_q  <= empty_i[3:2];
      wrong_left_q  <= wrong_i[3:2];
    end
    if (issued_i[0]) values_left_q <= values_i[127:64];
    newline_q <= newline_i;
  end
  for (genvar place = 0; place < 4; place++) begin : gen_cell
    logic        with_return, empty, wrong, nothing, in_field, holds;
    logic [31:0] value;
    logic [5:0]  field;
    assign with_return = newline_i[place] & ~end_i[place] & return_before[place];
    assign value       = with_return ? values_before[32*place +: 32] : values_before[32*place+32 +: 32];
    assign empty       = with_return ? empty_before[place] : empty_before[place+1];
    assign wrong       = with_return ? wrong_before[place] : wrong_before[place+1];
    assign field       = fields_i[6*place +: 6];
    assign nothing     = newline_i[place] & no_tab_i[place] & empty;  // the line has no byte
    assign in_field    = ends_cell_i[place] & (field <= LastField) & ~nothing;
    assign holds       = in_field & ~empty & ~wrong;
    always_ff @(posedge clk_i) begin
      values_q[32*place +: 32] <= holds ? value : '0;
      kept_q[place]            <= ends_cell_i[place] & ~(nothing & end_i[place]);
      present_q[place]         <= holds;
      malformed_q[place]       <= in_field & (wrong | (empty & (field == '0)));
      fields_q[6*place +: 6]   <= ends_cell_i[place] & ~(nothing & end_i[place]) ? field : '0;
      if (!newline_i[place] || (nothing && end_i[place])) ends_q[3*place +: 3] <= GoesOn;
      else if (long_i[place]) ends_q[3*place +: 3] <= TooLong;
      else if (nothing) ends_q[3*place +: 3] <= Empty;
      else if (field != LastField) ends_q[3*place +: 3] <= FieldCount;
      else ends_q[3*place +: 3] <= Good;
    end
  end

  // Cycle 2: whether a cell of the line is malformed.
  logic       malformed_left_q;  // one of the line that goes on
  logic [3:0] malformed_line;
  for (genvar place = 0; place < 4; place++) begin : gen_line_end
    logic [3:0] same_line;  // the bytes up to here, behind the last newline
    logic       goes_on;    // no line ends before
    for (genvar other = 0; other < 4; other++) begin : gen_other
      if (other == place) begin : gen_here
        assign same_line[other] = 1'b1;
      end else if (other < place) begin : gen_before
        assign same_line[other] = newline_q[place-1:other] == '0;
      end else begin : gen_after
        assign same_line[other] = 1'b0;
      end
    end
    if (place == 0) begin : gen_left
      assign goes_on = 1'b1;
    end else begin : gen_in_transfer
      assign goes_on = newline_q[place-1:0] == '0;
    end
    assign malformed_line[place] = ((same_line & malformed_q) != '0) | (goes_on & malformed_left_q);
    logic spoiled;
    assign spoiled = (ends_q[3*place +: 3] == Good) & malformed_line[place];
    always_ff @(posedge clk_i) ends_o[3*place +: 3] <= spoiled ? MalformedCell : ends_q[3*place +: 3];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) malformed_left_q <= 1'b0;
    else if (issued_i[1]) malformed_left_q <= malformed_line[3] & ~newline_q[3];
    values_o    <= values_q;
    kept_o      <= kept_q;
    present_o   <= present_q;
    malformed_o <= malformed_q;
    fields_o    <= fields_q;
  end
endmodule
