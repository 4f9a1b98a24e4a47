// The kernel of unit lane, made by `millrace image package`. No tool of AMD's has read this file yet.
module millrace_lane (
  input  wire            ap_clk,
  input  wire            ap_rst_n,
  input  wire            s_axi_control_awvalid,
  output wire            s_axi_control_awready,
  input  wire [19:0]     s_axi_control_awaddr,
  input  wire            s_axi_control_wvalid,
  output wire            s_axi_control_wready,
  input  wire [31:0]     s_axi_control_wdata,
  input  wire [3:0]      s_axi_control_wstrb,
  output wire            s_axi_control_bvalid,
  input  wire            s_axi_control_bready,
  output wire [1:0]      s_axi_control_bresp,
  input  wire            s_axi_control_arvalid,
  output wire            s_axi_control_arready,
  input  wire [19:0]     s_axi_control_araddr,
  output wire            s_axi_control_rvalid,
  input  wire            s_axi_control_rready,
  output wire [31:0]     s_axi_control_rdata,
  output wire [1:0]      s_axi_control_rresp,
  output wire            m_axi_input_arvalid,
  input  wire            m_axi_input_arready,
  output wire [63:0]     m_axi_input_araddr,
  output wire [7:0]      m_axi_input_arlen,
  output wire [2:0]      m_axi_input_arsize,
  output wire [1:0]      m_axi_input_arburst,
  input  wire            m_axi_input_rvalid,
  output wire            m_axi_input_rready,
  input  wire [511:0]    m_axi_input_rdata,
  input  wire [1:0]      m_axi_input_rresp,
  input  wire            m_axi_input_rlast,
  output wire            m_axi_output_awvalid,
  input  wire            m_axi_output_awready,
  output wire [63:0]     m_axi_output_awaddr,
  output wire [7:0]      m_axi_output_awlen,
  output wire [2:0]      m_axi_output_awsize,
  output wire [1:0]      m_axi_output_awburst,
  output wire            m_axi_output_wvalid,
  input  wire            m_axi_output_wready,
  output wire [127:0]    m_axi_output_wdata,
  output wire [15:0]     m_axi_output_wstrb,
  output wire            m_axi_output_wlast,
  input  wire            m_axi_output_bvalid,
  output wire            m_axi_output_bready,
  input  wire [1:0]      m_axi_output_bresp
);
  wire            register_write;
  wire [15:0]     register_address;
  wire [63:0]     register_data;
  wire            in_valid;
  wire            in_ready;
  wire [262:0]    in_data;
  wire            out_valid;
  wire            out_ready;
  wire [65:0]     out_data;

  assign s_axi_control_bresp = 2'b00;
  assign s_axi_control_rresp = 2'b00;
  assign m_axi_input_arsize = 3'd6;
  assign m_axi_input_arburst = 2'b01;
  assign m_axi_output_awsize = 3'd4;
  assign m_axi_output_awburst = 2'b01;
  assign m_axi_output_wstrb = {16{1'b1}};
  wire unused_rlast = m_axi_input_rlast;

  kernel_shell #(
    .InputBits(263), .InputWidth(512), .OutputBits(66), .OutputWidth(128),
    .Sections(1), .InputLast(262), .OutputLast(64)
  ) u_shell (
    .clk_i(ap_clk),
    .rst_ni(ap_rst_n),
    .control_awvalid_i(s_axi_control_awvalid),
    .control_awready_o(s_axi_control_awready),
    .control_awaddr_i(s_axi_control_awaddr),
    .control_wvalid_i(s_axi_control_wvalid),
    .control_wready_o(s_axi_control_wready),
    .control_wdata_i(s_axi_control_wdata),
    .control_wstrb_i(s_axi_control_wstrb),
    .control_bvalid_o(s_axi_control_bvalid),
    .control_bready_i(s_axi_control_bready),
    .control_arvalid_i(s_axi_control_arvalid),
    .control_arready_o(s_axi_control_arready),
    .control_araddr_i(s_axi_control_araddr),
    .control_rvalid_o(s_axi_control_rvalid),
    .control_rready_i(s_axi_control_rready),
    .control_rdata_o(s_axi_control_rdata),
    .arvalid_o(m_axi_input_arvalid),
    .arready_i(m_axi_input_arready),
    .araddr_o(m_axi_input_araddr),
    .arlen_o(m_axi_input_arlen),
    .rvalid_i(m_axi_input_rvalid),
    .rready_o(m_axi_input_rready),
    .rdata_i(m_axi_input_rdata),
    .rresp_i(m_axi_input_rresp),
    .awvalid_o(m_axi_output_awvalid),
    .awready_i(m_axi_output_awready),
    .awaddr_o(m_axi_output_awaddr),
    .awlen_o(m_axi_output_awlen),
    .wvalid_o(m_axi_output_wvalid),
    .wready_i(m_axi_output_wready),
    .wdata_o(m_axi_output_wdata),
    .wlast_o(m_axi_output_wlast),
    .bvalid_i(m_axi_output_bvalid),
    .bready_o(m_axi_output_bready),
    .bresp_i(m_axi_output_bresp),
    .register_write_o(register_write), .register_address_o(register_address),
    .register_data_o(register_data),
    .in_valid_o(in_valid), .in_ready_i(in_ready), .in_data_o(in_data),
    .out_valid_i(out_valid), .out_ready_o(out_ready), .out_data_i(out_data)
  );

  lane u_unit (
    .clk_i(ap_clk), .rst_ni(ap_rst_n),
    .register_write_i(register_write), .register_address_i(register_address),
    .register_data_i(register_data),
    .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data)
  );
endmodule
