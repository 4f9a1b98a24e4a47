// Makes numbers of the bytes of text, 4 a cycle: for each byte the number that its cell would hold if it ended there.
//
// A cell of decimals is -?[0-9]{1,10} in int32, one of hexadecimal digits [0-9a-fA-F]{1,8}; any other is wrong, and an
// empty one is empty. The digits that a number has before a byte are those of the bytes before it, at most as many as
// the cell has: so a number of 2 digits is made of two of 1, one of 4 of two of 2, and so on, whatever lies in which
// transfer. What the transfers before left is kept until the next one comes.
//
// The results come 7 cycles after the bytes.
module text_numbers (
  input  logic         clk_i,

  input  logic [2:0]   issued_i,         // bit k: the cycle k cycles ago had a transfer
  input  logic [15:0]  digits_i,         // of each byte 4 bits, 0 of what is no digit
  input  logic [15:0]  counts_i,         // of each byte the bytes that the cell has with it; 12 or more: more than 11
  input  logic [3:0]   decimal_i,        // 1: the cell's field is decimal
  input  logic [3:0]   negative_i,       // 1: the cell begins with a minus sign
  input  logic [3:0]   wrong_decimal_i,  // 1: a byte is no decimal digit, and not a minus sign that begins the cell
  input  logic [3:0]   wrong_hex_i,      // 1: a byte is no hexadecimal digit

  output logic [127:0] values_o,         // 0 where a cell is empty or wrong
  output logic [3:0]   empty_o,
  output logic [3:0]   wrong_o
);
  function automatic logic [23:0] times_625(input logic [13:0] number);
    times_625 = ({1'b0, number, 9'b0} + {4'b0, number, 6'b0}) + ({5'b0, number, 5'b0} + {6'b0, number, 4'b0}) +
                {10'b0, number};
  endfunction

  // What the last transfers left: its last digit, its last two pairs of digits, its fours of digits, and the pairs of
  // the transfer before it.
  logic [3:0]   digit_left_q;
  logic [13:0]  pairs_left_q;
  logic [15:0]  hex_pairs_left_q;
  logic [55:0]  fours_left_q;
  logic [63:0]  hex_fours_left_q;
  logic [27:0]  tops_left_q, tops_q;

  logic [27:0] pairs_q, pairs2_q;
  logic [31:0] hex_pairs_q;
  logic [55:0] fours_q;
  logic [63:0] hex_fours_q;
  always_ff @(posedge clk_i) begin
    if (issued_i[0]) digit_left_q <= digits_i[15:12];
    if (issued_i[1]) begin
      pairs_left_q     <= pairs_q[27:14];
      hex_pairs_left_q <= hex_pairs_q[31:16];
    end
    if (issued_i[2]) begin
      fours_left_q     <= fours_q;
      hex_fours_left_q <= hex_fours_q;
      tops_left_q      <= pairs2_q;
      tops_q           <= tops_left_q;
    end
  end

  for (genvar place = 0; place < 4; place++) begin : gen_place
    // Cycle 1: two digits, and whether the cell is wrong, beside its number.
    logic [3:0] count, digit, digit_before;
    logic [7:0] pair;
    logic       wrong;
    assign count = counts_i[4*place +: 4];
    assign digit = digits_i[4*place +: 4];
    if (place == 0) begin : gen_digit_left
      assign digit_before = (count > 4'd1) ? digit_left_q : '0;
    end else begin : gen_digit
      assign digit_before = (count > 4'd1) ? digits_i[4*place-4 +: 4] : '0;
    end
    assign pair  = {4'b0, digit} + {1'b0, digit_before, 3'b0} + {3'b0, digit_before, 1'b0};
    assign wrong = decimal_i[place]
      ? wrong_decimal_i[place] | (negative_i[place] ? (count < 4'd2) | (count > 4'd11) : (count > 4'd10))
      : wrong_hex_i[place] | (count > 4'd8);
    logic       wide2_q, wide4_q, wide8_q, wide4_2_q, wide8_2_q;
    logic       decimal_q, negative_q, wrong_q, empty_q;
    always_ff @(posedge clk_i) begin
      pairs_q[7*place +: 7]     <= pair[6:0];  // of decimal digits, a pair is at most 99
      hex_pairs_q[8*place +: 8] <= {digit_before, digit};
      wide2_q    <= count > 4'd2;
      wide4_q    <= count > 4'd4;
      wide8_q    <= count > 4'd8;
      decimal_q  <= decimal_i[place];
      negative_q <= negative_i[place];
      wrong_q    <= wrong & (count != '0);
      empty_q    <= count == '0;
    end

    // Cycle 2: four digits.
    logic [6:0]  pair_before;
    logic [7:0]  hex_pair_before;
    if (place < 2) begin : gen_pair_left
      assign pair_before     = wide2_q ? pairs_left_q[7*place +: 7] : '0;
      assign hex_pair_before = wide2_q ? hex_pairs_left_q[8*place +: 8] : '0;
    end else begin : gen_pair
      assign pair_before     = wide2_q ? pairs_q[7*place-14 +: 7] : '0;
      assign hex_pair_before = wide2_q ? hex_pairs_q[8*place-16 +: 8] : '0;
    end
    always_ff @(posedge clk_i) begin
      fours_q[14*place +: 14] <= {7'b0, pairs_q[7*place +: 7]} + {1'b0, pair_before, 6'b0} +
                                 {2'b0, pair_before, 5'b0} + {5'b0, pair_before, 2'b0};
      hex_fours_q[16*place +: 16] <= {hex_pair_before, hex_pairs_q[8*place +: 8]};
      pairs2_q[7*place +: 7]      <= pairs_q[7*place +: 7];
      wide4_2_q <= wide4_q;
      wide8_2_q <= wide8_q;
    end

    // Cycle 3: the four digits before these, and the two before those.
    logic [13:0] low3_q, high3_q;
    logic [6:0]  top3_q;
    logic [31:0] hex3_q;
    always_ff @(posedge clk_i) begin
      low3_q  <= fours_q[14*place +: 14];
      high3_q <= wide4_2_q ? fours_left_q[14*place +: 14] : '0;
      top3_q  <= wide8_2_q ? tops_q[7*place +: 7] : '0;
      hex3_q  <= {wide4_2_q ? hex_fours_left_q[16*place +: 16] : 16'b0, hex_fours_q[16*place +: 16]};
    end

    // Cycles 4 to 6: their sum, where 10^4 is 625 * 2^4, and 10^8 is 625 * 625 * 2^8. A number of int32 has at most 21
    // in its two digits at the top.
    logic [13:0] low4_q, top4_q;
    logic [23:0] high4_q, top5_q, top_product;
    logic [26:0] low5_q;
    logic [27:0] low_sum;
    logic [31:0] decimal6_q;
    logic        over4_q, over5_q, over6_q;
    assign top_product = times_625({7'b0, top3_q});
    assign low_sum     = {14'b0, low4_q} + {high4_q, 4'b0};
    always_ff @(posedge clk_i) begin
      low4_q     <= low3_q;
      high4_q    <= times_625(high3_q);
      top4_q     <= top_product[13:0];
      over4_q    <= top3_q > 7'd21;
      low5_q     <= low_sum[26:0];
      top5_q     <= times_625(top4_q);
      over5_q    <= over4_q;
      decimal6_q <= {5'b0, low5_q} + {top5_q, 8'b0};
      over6_q    <= over5_q;
    end
    logic unused_bits;
    assign unused_bits = ^{pair[7], top_product[23:14], low_sum[27]};

    // Cycle 7: the sign, and int32.
    logic [31:0] hex6, value_q;
    logic        decimal6, negative6, wrong6, empty6, wrong_in_all, wrong7_q, empty7_q;
    delay_line #(.Width(32), .Cycles(3)) u_hex (.clk_i, .data_i(hex3_q), .data_o(hex6));
    delay_line #(.Width(4), .Cycles(5)) u_cell (
      .clk_i, .data_i({decimal_q, negative_q, wrong_q, empty_q}), .data_o({decimal6, negative6, wrong6, empty6})
    );
    assign wrong_in_all = wrong6 |
      (decimal6 & (over6_q | (decimal6_q[31] & (~negative6 | (decimal6_q[30:0] != '0)))));
    always_ff @(posedge clk_i) begin
      if (wrong_in_all || empty6) value_q <= '0;
      else if (!decimal6) value_q <= hex6;
      else value_q <= negative6 ? -decimal6_q : decimal6_q;
      wrong7_q <= wrong_in_all;
      empty7_q <= empty6;
    end
    assign values_o[32*place +: 32] = value_q;
    assign wrong_o[place]           = wrong7_q;
    assign empty_o[place]           = empty7_q;
  end
endmodule
