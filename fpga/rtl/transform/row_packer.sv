// The unit row_packer: float32 that come column by column leave row by row, as the rows of a dense tensor lie.
//
// A section is a tile: 1 to 16 columns of as many values each as the register says, the last value marked. Each of 16
// memories holds a column, and each has room for two tiles: while the rows of one leave, one a cycle, the next one
// comes. A result has the values of a row, 0 behind the tile's columns. A tile is damaged if it ends within a column or
// has a seventeenth; it makes one result, without values, which tells.
module row_packer #(
  parameter int unsigned RowWidth = 9
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [32:0] in_data_i,  // {last, value}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [518:0] out_data_o  // {damaged, last, count, values}
);
  localparam int unsigned Columns = 16;

  logic unused_bits;
  assign unused_bits = ^register_data_i[63:RowWidth+1];

  logic [RowWidth:0] rows_q;  // of a tile
  always_ff @(posedge clk_i) begin
    if (register_write_i && register_address_i == row_packer_registers::Rows) rows_q <= register_data_i[RowWidth:0];
  end

  // The tile that comes.
  logic                fill_q;    // the half of the memories that it goes to
  logic [RowWidth-1:0] row_q;
  logic [4:0]          column_q;  // 16: no memory is left
  logic [1:0]          full_q;    // halves that hold a tile
  logic                push, column_ends, next_column, tile_comes, wrong;
  assign in_ready_o  = ~full_q[fill_q];
  assign push        = in_valid_i & in_ready_o;
  assign column_ends = {1'b0, row_q} + (RowWidth + 1)'(1) == rows_q;
  assign next_column = column_ends & ~column_q[4];
  assign tile_comes  = push & in_data_i[32];
  assign wrong       = column_q[4] | ~column_ends;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || tile_comes) begin
      row_q    <= '0;
      column_q <= '0;
    end else if (push) begin
      row_q    <= column_ends ? '0 : row_q + RowWidth'(1);
      column_q <= column_q + 5'(next_column);
    end
  end
  logic [4:0] columns_even_q, columns_odd_q;  // of the tiles in the two halves
  logic [1:0] wrong_q;
  always_ff @(posedge clk_i) begin
    if (tile_comes && !fill_q) columns_even_q <= column_q + 5'd1;
    if (tile_comes && fill_q) columns_odd_q <= column_q + 5'd1;
    if (tile_comes) wrong_q[fill_q] <= wrong;
  end

  // The tile whose rows leave.
  logic                drain_q;
  logic [RowWidth-1:0] read_q;    // the next row
  logic                admitted, issue, damaged, last, tile_leaves;
  logic [4:0]          columns;
  assign issue       = full_q[drain_q] & admitted;
  assign damaged     = wrong_q[drain_q];
  assign columns     = drain_q ? columns_odd_q : columns_even_q;
  assign last        = damaged | ({1'b0, read_q} + (RowWidth + 1)'(1) == rows_q);
  assign tile_leaves = issue & last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fill_q  <= 1'b0;
      drain_q <= 1'b0;
      full_q  <= '0;
      read_q  <= '0;
    end else begin
      fill_q  <= fill_q ^ tile_comes;
      drain_q <= drain_q ^ tile_leaves;
      full_q  <= (full_q | {tile_comes & fill_q, tile_comes & ~fill_q}) &
                 ~{tile_leaves & drain_q, tile_leaves & ~drain_q};
      if (tile_leaves) read_q <= '0;
      else if (issue) read_q <= read_q + RowWidth'(1);
    end
  end

  // Cycle 1: the memories. Cycle 2: the columns that count.
  logic [4:0]   count1_q, count2_q;
  logic         last1_q, last2_q, damaged1_q, damaged2_q;
  logic [511:0] read1_q, values_q;
  always_ff @(posedge clk_i) begin
    count1_q   <= damaged ? '0 : columns;
    last1_q    <= last;
    damaged1_q <= damaged;
    count2_q   <= count1_q;
    last2_q    <= last1_q;
    damaged2_q <= damaged1_q;
  end
`ifdef FORMAL
  logic [1:0] filled_q;   // tiles that came
  logic [1:0] drained_q;  // tiles that left
  logic       past_q;
`endif
  for (genvar column = 0; column < Columns; column++) begin : gen_column
    logic [31:0] memory_q [2 ** (RowWidth + 1)];
    logic        write;
    assign write = push & (column_q == 5'(column));
    always_ff @(posedge clk_i) begin
      if (write) memory_q[{fill_q, row_q}] <= in_data_i[31:0];
    end
    always_ff @(posedge clk_i) begin
      read1_q[32*column +: 32]  <= memory_q[{drain_q, read_q}];
      values_q[32*column +: 32] <= 5'(column) < count1_q ? read1_q[32*column +: 32] : '0;
    end
`ifdef FORMAL
    // What the memories of the first two columns hold of whole tiles, and of the tile that comes.
    if (column < 2) begin : gen_content
      for (genvar place = 0; place < 2 ** (RowWidth + 1); place++) begin : gen_place
        localparam int unsigned Half = place >> RowWidth;
        logic [RowWidth-1:0] row;
        logic [RowWidth+2:0] content;
        logic [1:0]          number;  // of the whole tile
        logic [4:0]          held;    // its columns
        logic                whole, came;
        assign row     = RowWidth'(place);
        assign content = memory_q[place][RowWidth+2:0];
        assign number  = drained_q + 2'(drained_q[0] != 1'(Half));
        assign held    = Half == 1 ? columns_odd_q : columns_even_q;
        assign whole   = full_q[Half] & ~wrong_q[Half] & (5'(column) < held) & ({1'b0, row} < rows_q);
        assign came    = ~full_q[Half] & (fill_q == 1'(Half)) & ({1'b0, row} < rows_q) &
                         ((5'(column) < column_q) | (column_q == 5'(column) && row < row_q));
        always_ff @(posedge clk_i) begin
          if (past_q && rst_ni && whole) assert (content == {number, 1'(column), row});
          if (past_q && rst_ni && came) assert (content == {filled_q, 1'(column), row});
        end
      end
    end
`endif
  end

  stream_credit_pipe #(.Width(519), .Latency(2)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i(full_q[drain_q]), .in_ready_o(admitted),
    .result_i({damaged2_q, last2_q, count2_q, values_q}), .out_valid_o, .out_ready_i, .out_data_o
  );

`ifdef FORMAL
  // Shown by induction, whatever the sides do: tiles leave in the order in which they came, none twice, each whole tile
  // with as many rows as the register says and each damaged one with one; no value goes to a half whose tile has not
  // left; and what is read of the first two columns is what came for this tile, column and row.
  //
  // The lowest bits of a value are {the tile's number, the column, the row}, as far as the pointers count.
  logic [RowWidth:0]   issued_q;   // rows of the tile that leaves
  logic                issued1_q, two_columns1_q;
  logic [1:0]          number1_q;
  logic [RowWidth-1:0] row1_q;
  logic                stopped_q, damaged_seen_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    assume (!register_write_i);
    assume (rows_q != '0 && rows_q <= (RowWidth + 1)'(2 ** RowWidth));
    assume (in_data_i[RowWidth+2:0] == {filled_q, column_q[0], row_q});
    filled_q  <= rst_ni ? filled_q + 2'(tile_comes) : '0;
    drained_q <= rst_ni ? drained_q + 2'(tile_leaves) : '0;
    if (!rst_ni || tile_leaves) issued_q <= '0;
    else issued_q <= issued_q + (RowWidth + 1)'(issue);
    issued1_q      <= rst_ni & issue & ~damaged;
    two_columns1_q <= columns > 5'd1;
    number1_q      <= drained_q;
    row1_q         <= read_q;
    stopped_q      <= rst_ni & (stopped_q | (in_valid_i & ~in_ready_o));
    damaged_seen_q <= rst_ni & (damaged_seen_q | (tile_leaves & damaged));
    if (past_q && rst_ni) begin
      assert (filled_q - drained_q == 2'(full_q[0]) + 2'(full_q[1]));
      assert (fill_q == filled_q[0] && drain_q == drained_q[0]);
      assert (full_q[drain_q] || full_q == '0);
      if (push) assert (!full_q[fill_q]);
      if (issue) assert (full_q[drain_q]);
      assert (column_q <= 5'(Columns));
      assert ({1'b0, row_q} < rows_q && {1'b0, read_q} < rows_q);
      assert (issued_q == {1'b0, read_q});
      if (tile_leaves) assert (issued_q + (RowWidth + 1)'(1) == (damaged ? (RowWidth + 1)'(1) : rows_q));
      if (full_q[0] && !wrong_q[0]) assert (columns_even_q != '0 && columns_even_q <= 5'(Columns));
      if (full_q[1] && !wrong_q[1]) assert (columns_odd_q != '0 && columns_odd_q <= 5'(Columns));
      if (full_q[fill_q]) assert (row_q == '0 && column_q == '0);
      if (!full_q[drain_q] || damaged) assert (read_q == '0);
      if (issued1_q) assert (read1_q[RowWidth+2:0] == {number1_q, 1'b0, row1_q});
      if (issued1_q && two_columns1_q) assert (read1_q[RowWidth+34:32] == {number1_q, 1'b1, row1_q});
      // The proof is not empty: a tile waited for room, one was damaged, and others followed.
      cover (stopped_q && damaged_seen_q && issued1_q && two_columns1_q && drained_q == 2'd3);
    end
  end
`endif
endmodule
