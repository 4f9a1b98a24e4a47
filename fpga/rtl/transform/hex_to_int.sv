// The unit hex_to_int: a token of one to eight hexadecimal digits becomes an id below 2^32.
//
// A row that is not present, and in a nullable column an empty token, is a null. Every other token that is not one to
// eight digits is damaged. Rows that are null or damaged have the id 0.
module hex_to_int (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        register_write_i,
  input  logic [15:0] register_address_i,
  input  logic [63:0] register_data_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [68:0] in_data_i,  // {present, length, token}

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [33:0] out_data_o  // {damaged, present, id}
);
  logic unused_bits;
  assign unused_bits = ^register_data_i[63:1];

  logic nullable_q;
  always_ff @(posedge clk_i) begin
    if (register_write_i && register_address_i == hex_to_int_registers::Nullable) nullable_q <= register_data_i[0];
  end

  // Cycle 1: the value of each digit, the first in the highest bits; the bytes of the token that are no digits.
  logic [3:0] length;
  assign length = in_data_i[67:64];
  logic [31:0] digits, digits_q;
  logic [7:0]  wrong, wrong_q;
  for (genvar place = 0; place < 8; place++) begin : gen_digit
    logic [7:0] character;
    logic       letter, number;
    assign character = in_data_i[8*place +: 8];
    assign letter    = (character[7:6] == 2'b01) & (character[4:3] == 2'b00) &
                       (character[2:0] != 3'd0) & (character[2:0] != 3'd7);
    assign number    = (character[7:4] == 4'h3) & (character[3:0] <= 4'd9);
    assign digits[28-4*place +: 4] = letter ? 4'd9 + 4'(character[2:0]) : character[3:0];
    assign wrong[place]            = ~letter & ~number & (4'(place) < length);
  end

  logic       null_q, length_wrong_q;
  logic [2:0] missing_q;  // digits that the token has less than eight
  always_ff @(posedge clk_i) begin
    digits_q  <= digits;
    wrong_q   <= wrong;
    length_wrong_q    <= (length > 4'd8) | (length == 4'd0);
    null_q    <= ~in_data_i[68] | (nullable_q & (length == 4'd0));
    missing_q <= 3'(4'd8 - length);
  end

  // Cycle 2: the digits that are there.
  logic [33:0] result_q;
  logic        damaged;
  assign damaged = ~null_q & (length_wrong_q | (wrong_q != '0));
  always_ff @(posedge clk_i) begin
    result_q <= {damaged, ~null_q & ~damaged, (null_q || damaged) ? 32'b0 : digits_q >> {missing_q, 2'b00}};
  end

  stream_credit_pipe #(.Width(34), .Latency(2)) u_pipe (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .result_i(result_q),
    .out_valid_o, .out_ready_i, .out_data_o
  );
endmodule
