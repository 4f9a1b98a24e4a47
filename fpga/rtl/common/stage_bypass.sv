// The streams around a stage of a lane: values go through the stage's unit, or past it if use_i is 0. use_i changes
// only while no value is under way.
module stage_bypass (
  input  logic        use_i,

  input  logic        in_valid_i,
  output logic        in_ready_o,
  input  logic [63:0] in_data_i,

  // To the unit and from it. The unit takes in_data_i.
  output logic        unit_valid_o,
  input  logic        unit_ready_i,
  input  logic        unit_valid_i,
  output logic        unit_ready_o,
  input  logic [63:0] unit_data_i,

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [63:0] out_data_o
);
  assign unit_valid_o = use_i & in_valid_i;
  assign unit_ready_o = use_i & out_ready_i;
  assign in_ready_o   = use_i ? unit_ready_i : out_ready_i;
  assign out_valid_o  = use_i ? unit_valid_i : in_valid_i;
  assign out_data_o   = use_i ? unit_data_i : in_data_i;
endmodule
