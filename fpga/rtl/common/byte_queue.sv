// A queue of the bytes of sections: beats come in, and any number of bytes up to those of a beat is taken at once.
//
// A section is any number of full beats and a last beat, which has from no byte to all. window_o shows the section's
// next bytes, available_o says how many bytes the queue holds, and ended_o that no more of the section will come; what
// window_o shows beyond available_o is not defined. take_i takes bytes, at most as many as are available and as a beat
// has. done_i ends the section: the queue drops what it holds and what still comes up to the last beat, and then takes
// the next section, of which a byte or its end must show before done_i ends it. No path leads from take_i and done_i to
// in_ready_o.
//
// The even beats and the odd ones have memories of their own, so that the window may reach over two beats.
module byte_queue #(
  parameter int unsigned BeatBytes = 32,  // a power of two
  parameter int unsigned Beats     = 8,   // a power of two, at least 4
  localparam int unsigned OffsetWidth    = $clog2(BeatBytes),
  localparam int unsigned BeatWidth      = $clog2(Beats),
  localparam int unsigned AvailableWidth = OffsetWidth + BeatWidth + 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic                      in_valid_i,
  output logic                      in_ready_o,
  input  logic [8*BeatBytes-1:0]    in_data_i,
  input  logic [OffsetWidth:0]      in_bytes_i,
  input  logic                      in_last_i,

  output logic [8*BeatBytes-1:0]    window_o,
  output logic [AvailableWidth-1:0] available_o,
  output logic                      ended_o,
  input  logic [OffsetWidth:0]      take_i,
  input  logic                      done_i
);
  logic [BeatWidth:0]             write_q;      // beats that came; the highest bit tells full from empty
  logic [BeatWidth+OffsetWidth:0] read_q;       // bytes that were taken
  logic [AvailableWidth-1:0]      available_q;
  logic                           ended_q;
  logic                           dropping_q;   // the rest of a section that is done

  logic [BeatWidth:0]        front;
  logic [BeatWidth:0]        held;              // beats of which a byte is still to be taken
  logic                      push;
  logic [AvailableWidth-1:0] come;              // the bytes before the reader takes some
  assign front       = read_q[BeatWidth+OffsetWidth:OffsetWidth];
  assign held        = write_q - front;
  assign in_ready_o  = dropping_q | (~ended_q & (held != (BeatWidth + 1)'(Beats)));
  assign push        = in_valid_i & in_ready_o & ~dropping_q;
  assign come        = push ? available_q + AvailableWidth'(in_bytes_i) : available_q;
  assign available_o = available_q;
  assign ended_o     = ended_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q     <= '0;
      read_q      <= '0;
      available_q <= '0;
      ended_q     <= 1'b0;
      dropping_q  <= 1'b0;
    end else if (done_i) begin
      write_q     <= '0;
      read_q      <= '0;
      available_q <= '0;
      ended_q     <= 1'b0;
      dropping_q  <= ~ended_q & ~(in_valid_i & in_ready_o & in_last_i);
    end else begin
      write_q     <= write_q + (BeatWidth + 1)'(push);
      read_q      <= read_q + (BeatWidth + OffsetWidth + 1)'(take_i);
      available_q <= come - AvailableWidth'(take_i);
      ended_q     <= ended_q | (push & in_last_i);
      dropping_q  <= dropping_q & ~(in_valid_i & in_last_i);
    end
  end

  logic [8*BeatBytes-1:0] even_q [Beats/2];
  logic [8*BeatBytes-1:0] odd_q [Beats/2];
  logic [BeatWidth-2:0]   even_address, odd_address;
  assign odd_address  = front[BeatWidth-1:1];
  assign even_address = front[BeatWidth-1:1] + (BeatWidth - 1)'(front[0]);
  always_ff @(posedge clk_i) begin
    if (push && !write_q[0]) even_q[write_q[BeatWidth-1:1]] <= in_data_i;
    if (push && write_q[0]) odd_q[write_q[BeatWidth-1:1]] <= in_data_i;
  end

  logic [8*BeatBytes-1:0] even, odd;
  assign even = even_q[even_address];
  assign odd  = odd_q[odd_address];

  logic [16*BeatBytes-1:0] pair;
  assign pair     = front[0] ? {even, odd} : {odd, even};
  assign window_o = (8 * BeatBytes)'(pair >> {read_q[OffsetWidth-1:0], 3'b000});

`ifdef FORMAL
  // Shown by induction, whatever the sides do within the contract above: no beat comes without room, the available
  // bytes are those that came and were not taken, the window shows them in their order, and every beat is kept for its
  // own section or dropped with it.
  //
  // Byte k of a section has the value k there, as far as the pointers count, so that a byte that is lost, doubled or
  // moved shows.
  logic [1:0] ends_q;   // sections whose last beat came
  logic [1:0] dones_q;  // sections that are done
  logic       past_q;
  logic       dropped_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!past_q) assume (!rst_ni);
    ends_q    <= rst_ni ? ends_q + 2'(in_valid_i & in_ready_o & in_last_i) : 2'd0;
    dones_q   <= rst_ni ? dones_q + 2'(done_i) : 2'd0;
    dropped_q <= rst_ni & (dropped_q | dropping_q);
    assume (AvailableWidth'(take_i) <= available_q && take_i <= (OffsetWidth + 1)'(BeatBytes));
    assume (!(done_i && dropping_q));
    assume (in_bytes_i <= (OffsetWidth + 1)'(BeatBytes));
    if (!in_last_i) assume (in_bytes_i == (OffsetWidth + 1)'(BeatBytes));
    if (past_q && rst_ni) begin
      assert (held <= (BeatWidth + 1)'(Beats));
      if (push) assert (held < (BeatWidth + 1)'(Beats));
      if (push) assert (ends_q == dones_q);
      assert (ends_q - dones_q == 2'(ended_q) - 2'(dropping_q));
      if (dropping_q) assert (write_q == '0 && read_q == '0 && available_q == '0 && !ended_q);
      if (!ended_q) assert (reach == room);
      if (ended_q) assert (reach <= room && reach + (AvailableWidth + 1)'(BeatBytes) >= room);
      // The proof is not empty: the queue was full, and a section follows one of which beats were dropped.
      cover (held == (BeatWidth + 1)'(Beats) && read_q[OffsetWidth-1:0] != '0);
      cover (dropped_q && ended_q && available_q == AvailableWidth'(BeatBytes + 1));
    end
  end
  // Both have a bit to spare, so that no sum is equal only because it wrapped.
  logic [AvailableWidth:0] reach;  // from the front's first byte to the last available one
  logic [AvailableWidth:0] room;   // of the beats held
  assign reach = (AvailableWidth + 1)'(available_q) + (AvailableWidth + 1)'(read_q[OffsetWidth-1:0]);
  assign room  = {1'b0, held, OffsetWidth'(0)};
  for (genvar place = 0; place < BeatBytes; place++) begin : gen_bytes
    always_ff @(posedge clk_i) begin
      assume (in_data_i[8*place +: 8] == 8'({write_q, OffsetWidth'(place)}));
      if (past_q && rst_ni && AvailableWidth'(place) < available_q) begin
        assert (window_o[8*place +: 8] == 8'((BeatWidth + OffsetWidth + 1)'(read_q + place)));
      end
    end
    for (genvar beat = 0; beat < Beats; beat++) begin : gen_beats
      logic [BeatWidth:0]     number;   // of the beat that is `beat` behind the front
      logic [8*BeatBytes-1:0] content;
      assign number  = front + (BeatWidth + 1)'(beat);
      assign content = number[0] ? odd_q[number[BeatWidth-1:1]] : even_q[number[BeatWidth-1:1]];
      always_ff @(posedge clk_i) begin
        if (past_q && rst_ni && (BeatWidth + 1)'(beat) < held) begin
          assert (content[8*place +: 8] == 8'({number, OffsetWidth'(place)}));
        end
      end
    end
  end
`endif
endmodule
