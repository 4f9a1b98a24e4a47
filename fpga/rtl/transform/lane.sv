// The unit lane: a section of a column goes from its bytes to what a chain of operators makes of its values, on chip.
//
// The section is decoded by plain_decoder, or by hybrid_decoder and dictionary_gather. Each value goes to its row, and
// then through fill_null, clamp, int_to_float, log, bucketize, sigrid_hash and positive_modulus, in this order and past
// those that the register stages leaves out. Every row makes a result; behind them there is one without a value, which
// ends the section and says whether it is damaged. The next section may come meanwhile, with the same registers.
module lane (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         register_write_i,
  input  logic [15:0]  register_address_i,
  input  logic [63:0]  register_data_i,

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [262:0] in_data_i,  // {last, bytes, data}

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [65:0] out_data_o  // {damaged, last, value}
);
  // 0000h to 7fffh: dictionary_gather. 8000h to 9fffh: bucketize. a0u0h to a0ufh: the lane's own registers (u = 0) and
  // those of a unit. c000h to cfffh: which rows are null.
  logic        to_dictionary, to_borders, to_small, to_presence;
  logic [15:0] address;     // within the unit
  assign to_dictionary = register_write_i & ~register_address_i[15];
  assign to_borders    = register_write_i & (register_address_i[15:13] == 3'b100);
  assign to_small      = register_write_i & (register_address_i[15:8] == 8'ha0);
  assign to_presence   = register_write_i & (register_address_i[15:12] == 4'hc);
  always_comb begin
    address = register_address_i;
    if (to_borders) address = {3'b0, register_address_i[12:0]};
    if (to_small)   address = {12'b0, register_address_i[3:0]};
  end
  logic [15:0] unit_write;  // bit u: to the registers a0u0h to a0ufh
  assign unit_write = to_small ? 16'd1 << register_address_i[7:4] : '0;

  logic        encoded_q;  // values are indices of the dictionary
  logic        nullable_q;
  logic [31:0] rows_q;
  logic [6:0]  stages_q;
  always_ff @(posedge clk_i) begin
    if (unit_write[0]) begin
      case (register_address_i)
        lane_registers::Encoded:  encoded_q  <= register_data_i[0];
        lane_registers::Nullable: nullable_q <= register_data_i[0];
        lane_registers::Rows:     rows_q     <= register_data_i[31:0];
        lane_registers::Stages:   stages_q   <= register_data_i[6:0];
        default: ;
      endcase
    end
  end
  logic unused_writes;
  assign unused_writes = ^unit_write[15:8];

  // The clocks of what the section does not go through may stand still, but for writes of registers.
  logic clk_plain, clk_encoded, clk_fill, clk_clamp, clk_float, clk_log, clk_bucket, clk_hash, clk_modulus;
  clock_gate u_clk_plain (.clk_i, .enable_i(~rst_ni | ~encoded_q | unit_write[1]), .clk_o(clk_plain));
  clock_gate u_clk_encoded (
    .clk_i, .enable_i(~rst_ni | encoded_q | unit_write[2] | to_dictionary), .clk_o(clk_encoded)
  );
  clock_gate u_clk_fill (.clk_i, .enable_i(~rst_ni | stages_q[0] | unit_write[3]), .clk_o(clk_fill));
  clock_gate u_clk_clamp (.clk_i, .enable_i(~rst_ni | stages_q[1] | unit_write[4]), .clk_o(clk_clamp));
  clock_gate u_clk_float (.clk_i, .enable_i(~rst_ni | stages_q[2]), .clk_o(clk_float));
  clock_gate u_clk_log (.clk_i, .enable_i(~rst_ni | stages_q[3] | unit_write[5]), .clk_o(clk_log));
  clock_gate u_clk_bucket (.clk_i, .enable_i(~rst_ni | stages_q[4] | to_borders), .clk_o(clk_bucket));
  clock_gate u_clk_hash (.clk_i, .enable_i(~rst_ni | stages_q[5] | unit_write[6]), .clk_o(clk_hash));
  clock_gate u_clk_modulus (.clk_i, .enable_i(~rst_ni | stages_q[6] | unit_write[7]), .clk_o(clk_modulus));

  // The section's values, up to 4 a transfer.
  logic         plain_in_ready, plain_valid, plain_ready;
  logic [260:0] plain_data;
  plain_decoder u_plain (
    .clk_i(clk_plain), .rst_ni, .register_write_i(unit_write[1]), .register_address_i(address), .register_data_i,
    .in_valid_i(in_valid_i & ~encoded_q), .in_ready_o(plain_in_ready), .in_data_i,
    .out_valid_o(plain_valid), .out_ready_i(plain_ready), .out_data_o(plain_data)
  );
  logic         hybrid_in_ready, hybrid_valid, hybrid_ready;
  logic [261:0] hybrid_data;
  hybrid_decoder u_hybrid (
    .clk_i(clk_encoded), .rst_ni, .register_write_i(unit_write[2]), .register_address_i(address), .register_data_i,
    .in_valid_i(in_valid_i & encoded_q), .in_ready_o(hybrid_in_ready), .in_data_i,
    .out_valid_o(hybrid_valid), .out_ready_i(hybrid_ready), .out_data_o(hybrid_data)
  );
  logic         gather_valid, gather_ready;
  logic [260:0] gather_data;
  dictionary_gather u_gather (
    .clk_i(clk_encoded), .rst_ni, .register_write_i(to_dictionary), .register_address_i(address), .register_data_i,
    .in_valid_i(hybrid_valid), .in_ready_o(hybrid_ready), .in_data_i(hybrid_data),
    .out_valid_o(gather_valid), .out_ready_i(gather_ready), .out_data_o(gather_data)
  );
  assign in_ready_o = encoded_q ? hybrid_in_ready : plain_in_ready;

  logic         wide_ready;
  assign plain_ready  = wide_ready & ~encoded_q;
  assign gather_ready = wide_ready & encoded_q;

  // The rows' values, one a cycle.
  logic        spread_valid, spread_ready, spread_present, done, damaged, next;
  logic [63:0] spread_data;
  value_spread u_spread (
    .clk_i, .rst_ni, .rows_i(rows_q), .nullable_i(nullable_q), .presence_write_i(to_presence),
    .presence_address_i(register_address_i[11:0]), .presence_data_i(register_data_i),
    .in_valid_i(encoded_q ? gather_valid : plain_valid), .in_ready_o(wide_ready),
    .in_data_i(encoded_q ? gather_data : plain_data),
    .out_valid_o(spread_valid), .out_ready_i(spread_ready), .out_value_o(spread_data), .out_present_o(spread_present),
    .done_o(done), .damaged_o(damaged), .next_i(next)
  );

  // The chain.
  logic        fill_in_valid, fill_in_ready, fill_out_valid, fill_out_ready, fill_valid, fill_ready;
  logic [63:0] fill_result, fill_data;
  fill_null u_fill (
    .clk_i(clk_fill), .rst_ni, .register_write_i(unit_write[3]), .register_address_i(address), .register_data_i,
    .in_valid_i(fill_in_valid), .in_ready_o(fill_in_ready), .in_data_i({spread_present, spread_data}),
    .out_valid_o(fill_out_valid), .out_ready_i(fill_out_ready), .out_data_o(fill_result)
  );
  stage_bypass u_fill_stage (
    .use_i(stages_q[0]), .in_valid_i(spread_valid), .in_ready_o(spread_ready), .in_data_i(spread_data),
    .unit_valid_o(fill_in_valid), .unit_ready_i(fill_in_ready),
    .unit_valid_i(fill_out_valid), .unit_ready_o(fill_out_ready), .unit_data_i(fill_result),
    .out_valid_o(fill_valid), .out_ready_i(fill_ready), .out_data_o(fill_data)
  );

  logic        clamp_in_valid, clamp_in_ready, clamp_out_valid, clamp_out_ready, clamp_valid, clamp_ready;
  logic [63:0] clamp_result, clamp_data;
  clamp u_clamp (
    .clk_i(clk_clamp), .rst_ni, .register_write_i(unit_write[4]), .register_address_i(address), .register_data_i,
    .in_valid_i(clamp_in_valid), .in_ready_o(clamp_in_ready), .in_data_i(fill_data),
    .out_valid_o(clamp_out_valid), .out_ready_i(clamp_out_ready), .out_data_o(clamp_result)
  );
  stage_bypass u_clamp_stage (
    .use_i(stages_q[1]), .in_valid_i(fill_valid), .in_ready_o(fill_ready), .in_data_i(fill_data),
    .unit_valid_o(clamp_in_valid), .unit_ready_i(clamp_in_ready),
    .unit_valid_i(clamp_out_valid), .unit_ready_o(clamp_out_ready), .unit_data_i(clamp_result),
    .out_valid_o(clamp_valid), .out_ready_i(clamp_ready), .out_data_o(clamp_data)
  );

  logic        float_in_valid, float_in_ready, float_out_valid, float_out_ready, float_valid, float_ready;
  logic [31:0] float_result;
  logic [63:0] float_data;
  int_to_float u_float (
    .clk_i(clk_float), .rst_ni, .register_write_i(1'b0), .register_address_i(address), .register_data_i,
    .in_valid_i(float_in_valid), .in_ready_o(float_in_ready), .in_data_i(clamp_data),
    .out_valid_o(float_out_valid), .out_ready_i(float_out_ready), .out_data_o(float_result)
  );
  stage_bypass u_float_stage (
    .use_i(stages_q[2]), .in_valid_i(clamp_valid), .in_ready_o(clamp_ready), .in_data_i(clamp_data),
    .unit_valid_o(float_in_valid), .unit_ready_i(float_in_ready),
    .unit_valid_i(float_out_valid), .unit_ready_o(float_out_ready), .unit_data_i({32'b0, float_result}),
    .out_valid_o(float_valid), .out_ready_i(float_ready), .out_data_o(float_data)
  );

  logic        log_in_valid, log_in_ready, log_out_valid, log_out_ready, log_valid, log_ready;
  logic [31:0] log_result;
  logic [63:0] log_data;
  log u_log (
    .clk_i(clk_log), .rst_ni, .register_write_i(unit_write[5]), .register_address_i(address), .register_data_i,
    .in_valid_i(log_in_valid), .in_ready_o(log_in_ready), .in_data_i(float_data[31:0]),
    .out_valid_o(log_out_valid), .out_ready_i(log_out_ready), .out_data_o(log_result)
  );
  stage_bypass u_log_stage (
    .use_i(stages_q[3]), .in_valid_i(float_valid), .in_ready_o(float_ready), .in_data_i(float_data),
    .unit_valid_o(log_in_valid), .unit_ready_i(log_in_ready),
    .unit_valid_i(log_out_valid), .unit_ready_o(log_out_ready), .unit_data_i({32'b0, log_result}),
    .out_valid_o(log_valid), .out_ready_i(log_ready), .out_data_o(log_data)
  );

  logic        bucket_in_valid, bucket_in_ready, bucket_out_valid, bucket_out_ready, bucket_valid, bucket_ready;
  logic [63:0] bucket_result, bucket_data;
  bucketize u_bucket (
    .clk_i(clk_bucket), .rst_ni, .register_write_i(to_borders), .register_address_i(address), .register_data_i,
    .in_valid_i(bucket_in_valid), .in_ready_o(bucket_in_ready), .in_data_i(log_data),
    .out_valid_o(bucket_out_valid), .out_ready_i(bucket_out_ready), .out_data_o(bucket_result)
  );
  stage_bypass u_bucket_stage (
    .use_i(stages_q[4]), .in_valid_i(log_valid), .in_ready_o(log_ready), .in_data_i(log_data),
    .unit_valid_o(bucket_in_valid), .unit_ready_i(bucket_in_ready),
    .unit_valid_i(bucket_out_valid), .unit_ready_o(bucket_out_ready), .unit_data_i(bucket_result),
    .out_valid_o(bucket_valid), .out_ready_i(bucket_ready), .out_data_o(bucket_data)
  );

  logic        hash_in_valid, hash_in_ready, hash_out_valid, hash_out_ready, hash_valid, hash_ready;
  logic [63:0] hash_result, hash_data;
  sigrid_hash u_hash (
    .clk_i(clk_hash), .rst_ni, .register_write_i(unit_write[6]), .register_address_i(address), .register_data_i,
    .in_valid_i(hash_in_valid), .in_ready_o(hash_in_ready), .in_data_i(bucket_data),
    .out_valid_o(hash_out_valid), .out_ready_i(hash_out_ready), .out_data_o(hash_result)
  );
  stage_bypass u_hash_stage (
    .use_i(stages_q[5]), .in_valid_i(bucket_valid), .in_ready_o(bucket_ready), .in_data_i(bucket_data),
    .unit_valid_o(hash_in_valid), .unit_ready_i(hash_in_ready),
    .unit_valid_i(hash_out_valid), .unit_ready_o(hash_out_ready), .unit_data_i(hash_result),
    .out_valid_o(hash_valid), .out_ready_i(hash_ready), .out_data_o(hash_data)
  );

  logic        modulus_in_valid, modulus_in_ready, modulus_out_valid, modulus_out_ready, modulus_valid, modulus_ready;
  logic [63:0] modulus_result, modulus_data;
  positive_modulus u_modulus (
    .clk_i(clk_modulus), .rst_ni, .register_write_i(unit_write[7]), .register_address_i(address), .register_data_i,
    .in_valid_i(modulus_in_valid), .in_ready_o(modulus_in_ready), .in_data_i(hash_data),
    .out_valid_o(modulus_out_valid), .out_ready_i(modulus_out_ready), .out_data_o(modulus_result)
  );
  stage_bypass u_modulus_stage (
    .use_i(stages_q[6]), .in_valid_i(hash_valid), .in_ready_o(hash_ready), .in_data_i(hash_data),
    .unit_valid_o(modulus_in_valid), .unit_ready_i(modulus_in_ready),
    .unit_valid_i(modulus_out_valid), .unit_ready_o(modulus_out_ready), .unit_data_i(modulus_result),
    .out_valid_o(modulus_valid), .out_ready_i(modulus_ready), .out_data_o(modulus_data)
  );

  // Behind the last row's result goes the one that ends the section. The rows between value_spread and the output are
  // counted a cycle late, so that a row that leaves need not reach the counter in its cycle.
  logic [15:0] under_way_q;         // before the rows that entered and left in the last cycle
  logic        entered_q, left_q;   // in the last cycle
  logic        empty;
  logic        ends;
  assign empty         = (under_way_q[15:1] == '0) & (under_way_q[0] == (left_q & ~entered_q)) & (left_q | ~entered_q);
  assign ends          = done & empty;
  assign next          = ends & out_ready_i;
  assign modulus_ready = out_ready_i;
  assign out_valid_o   = modulus_valid | ends;
  assign out_data_o    = {ends & damaged, ends, ends ? 64'b0 : modulus_data};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      under_way_q <= '0;
      entered_q   <= 1'b0;
      left_q      <= 1'b0;
    end else begin
      under_way_q <= under_way_q + 16'(entered_q) - 16'(left_q);
      entered_q   <= spread_valid & spread_ready;
      left_q      <= modulus_valid & out_ready_i;
    end
  end
endmodule
