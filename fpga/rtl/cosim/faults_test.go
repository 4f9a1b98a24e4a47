package cosim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
)

// seededFault is a change of a source that makes a unit wrong.
type seededFault struct {
	name, source string
	old, fault   string
}

// seededFaults are faults of units, which their cases must find.
func seededFaults() map[string][]seededFault {
	const (
		hybrid = "decode/hybrid_decoder.sv"
		lists  = "decode/list_lengths.sv"
		plain  = "decode/plain_decoder.sv"
		gather = "decode/dictionary_gather.sv"
		packer = "transform/row_packer.sv"
		vocab  = "transform/vocabulary.sv"
		sum    = "common/float_sum.sv"
		ln     = "common/natural_logarithm.sv"
		float  = "transform/int_to_float.sv"
		spread = "decode/value_spread.sv"
		lane   = "transform/lane.sv"
		lines  = "decode/text_decoder.sv"
		number = "decode/text_numbers.sv"
		ends   = "decode/text_lines.sv"
	)
	return map[string][]seededFault{
		"hybrid_decoder": {
			{"a header that has not come is read", hybrid, "some | (available[2:0] > 3'(place))", "1'b1"},
			{"the fifth byte may have any bits", hybrid, "come[4] & (window[39:36] == '0)", "come[4]"},
			{"a header that is cut is waited for", hybrid, "(ended | come[4])", "come[4]"},
			{"a packed run is read before it came", hybrid, "width_q <= available[5:0]", "(available != '0) | (width_q == '0)"},
			{"the last values are read before they came", hybrid, "last_bytes_q <= available[5:0]", "1'b1"},
			{"a repeated value is read before it came", hybrid, "value_bytes_q <= available[2:0]", "1'b1"},
			{"a run of eight goes on", hybrid, "left_q[30:3] == '0 || left_q == 31'd8", "left_q[30:3] == '0"},
			{"a section of eight does not end", hybrid, "run_full && needed_q == 32'd8", "1'b0"},
			{"the last bits are rounded down", hybrid, "6'((last_bits + 8'd7) >> 3)", "6'(last_bits >> 3)"},
			{"an empty run keeps its value", hybrid, "!packed_q && run_ends) take",
				"!packed_q && run_some && run_ends) take"},
			{"a transfer that waits is lost", hybrid, "~waits_q | admitted", "1'b1"},
			{"a section ends before its last transfer has room", hybrid, "emit & emit_last & proceed", "emit & emit_last"},
			{"a run goes on while a transfer waits", hybrid, "run_there & proceed", "run_there"},
			{"the limit is not reached", hybrid, "value > limit_q", "value >= limit_q"},
			{"damage is forgotten", hybrid, "damaged_q | (above_q", "1'b0 & damaged_q | (above_q"},
			{"damage goes on to the next section", hybrid, "damaged & ~tags_q[4*TagWidth+5]", "damaged"},
			{"a repeated value is cut to its bits", hybrid, "33'd1 << {value_bytes_q, 3'b000}", "33'd1 << width_q"},
		},
		"text_decoder": {
			{"two digits have one", number, "(count > 4'd1) ? digit_left_q", "(count > 4'd2) ? digit_left_q"},
			{"nine digits have eight", number, "wide8_q    <= count > 4'd8", "wide8_q    <= count > 4'd9"},
			{"the first digits are of the transfer before", number, "wide8_2_q ? tops_q", "wide8_2_q ? tops_left_q"},
			{"a number may have any two digits at the top", number, "top3_q > 7'd21", "top3_q > 7'd63"},
			{"the greatest number is 2^31", number, "(~negative6 | (decimal6_q[30:0] != '0))", "(decimal6_q[30:0] != '0)"},
			{"the least number is 1 - 2^31", number, "(~negative6 | (decimal6_q[30:0] != '0))", "1'b1"},
			{"numbers have no sign", number, "negative6 ? -decimal6_q : decimal6_q", "decimal6_q"},
			{"a sign without digits", number, "(count < 4'd2) | ", ""},
			{"a sign is a digit", number, "(count > 4'd11)", "(count > 4'd10)"},
			{"eleven digits", number, ": (count > 4'd10))", ": (count > 4'd11))"},
			{"nine hexadecimal digits", number, "| (count > 4'd8);", "| (count > 4'd9);"},
			{"a sign within a number", lines, "~(minus2_q & begins_cell)", "~minus2_q"},
			{"a cell begins with each transfer", lines, "{content2_q[2:0], content_left_q}", "{content2_q[2:0], 1'b0}"},
			{"a sign is forgotten", lines, "negative3_q[place] | (open3_q[place] & negative_q)", "negative3_q[place]"},
			{"a wrong digit is forgotten", lines, "wrong_hex3_q[place] | (open3_q[place] & wrong_hex_q)",
				"wrong_hex3_q[place]"},
			{"a long cell begins again", lines, "(count_q >= 4'd12) ? 4'd12 : count_q", "count_q"},
			{"a line of 65536 bytes is too long", lines, "& line_past_q[place]", ""},
			{"a line of 65537 bytes is not", lines, "(line_transfers_q > 15'd16384) |", "1'b0 |"},
			{"the tabs of a line begin again", lines, "if (line_tabs_q < 6'd40) line", "line"},
			{"a byte order mark is a part of the line", lines, "line_transfers_q <= 15'd1;", "line_transfers_q <= 15'd0;"},
			{"each section begins a partition", lines, "first1_q & begins_q", "first1_q"},
			{"each transfer begins a section", lines, "first1_q & begins_q", "begins_q"},
			{"a byte order mark of two bytes", lines, "(&mark_q) & there_q[2]", "(&mark_q)"},
			{"a section goes on with the line before", lines, "if (last_q[2]) begin", "if (1'b0) begin"},
			{"a CR belongs to the end of a section", ends, "newline_i[place] & ~end_i[place] & return",
				"newline_i[place] & return"},
			{"a CR belongs to a tab", ends, "newline_i[place] & ~end_i[place] & return", "~end_i[place] & return"},
			{"the end behind an LF is a line", ends, "<= ends_cell_i[place] & ~(nothing & end_i[place]);",
				"<= ends_cell_i[place];"},
			{"a label may be empty", ends, "(wrong | (empty & (field == '0)))", "wrong"},
			{"damage goes on to the next line", ends, "malformed_line[3] & ~newline_q[3];", "malformed_line[3];"},
			{"damage is forgotten", ends, " | (goes_on & malformed_left_q)", ""},
			{"lines without a label have 38 fields", lines, "line_tabs + {5'b0, label_absent_q}", "line_tabs"},
			{"the end behind a full transfer is lost", lines, "~closing_q & in_data_i[35] & full", "1'b0"},
			{"the number of the transfer before is lost", ends, "{values_i, values_left_q}", "{values_i, 64'b0}"},
			{"a sum lacks its high part", number, "+ {top5_q, 8'b0}", ""},
		},
		"int_to_float": {
			{"ties go up", float, "(normal[40] | (normal[38:0] != '0))", "1'b1"},
			{"ties go down", float, "(normal[40] | (normal[38:0] != '0))", "(normal[38:0] != '0)"},
			{"what lies behind the half is not seen", float, "(normal[40] | (normal[38:0] != '0))", "normal[40]"},
			{"a zero has an exponent", float, "zero3_q ? '0 : ", ""},
		},
		"lane": {
			{"a null takes a value", spread, "take      = advance & ~absent", "take      = advance"},
			{"the nulls of the rows before", spread, "row_q[AddressWidth+5:6] + 1'b1", "row_q[AddressWidth+5:6]"},
			{"the nulls of the row before", spread, "word_q : bits >> 1", "word_q : bits"},
			{"a section's first rows are any", spread, "begins_q ? first_q : bits_q", "bits_q"},
			{"any word is the first", spread, "presence_write_i && presence_address_i == '0", "presence_write_i"},
			{"a cycle between two transfers", spread, "~behind_full_q & ~closed_q", "~full_q & ~closed_q"},
			{"the end comes before the rows", lane, "done & empty", "done"},
			{"the end comes with the last row", lane, " & (left_q | ~entered_q)", ""},
			{"clamp is left out", lane, ".use_i(stages_q[1])", ".use_i(1'b0)"},
			{"a register of another unit", lane, ".register_write_i(unit_write[7])", ".register_write_i(unit_write[6])"},
		},
		"list_lengths": {
			{"the last row does not leave", lists, "closing_q <= ~closing_q & in_data_i[60]", "closing_q <= 1'b0"},
			{"a transfer is taken beside a last row", lists, "in_ready_o = admitted & ~closing_q",
				"in_ready_o = admitted"},
			{"a pair behind those that count", lists, "4'(pair) < in_data_i[59:56]", "4'(pair) <= in_data_i[59:56]"},
			{"pairs of a last row", lists, "there      = ~closing_q & ", "there      = "},
			{"a null element is none", lists, "definition >= element_q", "definition > element_q"},
			{"a null element is present", lists, "definition == greatest_q", "definition >= element_q"},
			{"an empty row is null", lists, "{1'b0, definition} + 7'd1 >= {1'b0, element_q}",
				"definition >= element_q"},
			{"a null row is empty", lists, "{1'b0, definition} + 7'd1", "{1'b0, definition} + 7'd2"},
			{"level 63 is below the others", lists, "{1'b0, definition} + 7'd1 >= {1'b0, element_q}",
				"6'(definition + 6'd1) >= element_q"},
			{"a section begins within a row", lists, "open_q & element_before_q}", "element_before_q}"},
			{"a row without elements goes on", lists, "elements_q & {elements_q[6:0], open_q & element_before_q}",
				"elements_q"},
			{"a row goes on without an element", lists, "elements_q & {elements_q[6:0], open_q & element_before_q}",
				"{elements_q[6:0], open_q & element_before_q}"},
			{"any element of the transfer before", lists, "last_pairs & elements_q", "elements_q"},
			{"a transfer without pairs has no element", lists, "if (issued1_q && pairs_q[0]) element",
				"if (issued1_q) element"},
			{"an element that was not sent", lists, "if (issued1_q && pairs_q[0]) element", "if (pairs_q[0]) element"},
			{"a section begins with the row before", lists, "open_q <= ~closing1_q & (open_q | pairs_q[0])",
				"open_q <= open_q | pairs_q[0]"},
			{"a transfer without pairs ends the row", lists, "open_q <= ~closing1_q & (open_q | pairs_q[0])",
				"open_q <= ~closing1_q & pairs_q[0]"},
			{"a row that was not sent", lists, "else if (issued1_q) open_q", "else open_q"},
			{"a first row ends one", lists, "4'(row) + 4'(!open2_q)", "4'(row)"},
			{"a section's start without pairs", lists, "4'(!open2_q && starts2_q[0])", "4'(!open2_q)"},
			{"a section without rows has one", lists, "closing2_q ? 4'(open2_q)", "closing2_q ? 4'd1"},
			{"nulls of pairs, not of elements", lists, "(element_here & present2_q) != '0", "present2_q[row]"},
			{"nulls of pairs, not of rows", lists, "(here & row_present2_q) != '0", "row_present2_q[row]"},
			{"a length behind the rows", lists, "4'(row) < rows_q ? ends_q", "1'b1 ? ends_q"},
			{"the rows before are not taken off", lists, "- ends_q[4*row-4 +: 4]", "- 4'd0"},
			{"damage goes on to the next section", lists, "~closing3_q & damaged;", "damaged;"},
			{"damage is forgotten", lists, "damaged_q | wrong3_q", "wrong3_q"},
			{"damage is not seen", lists, "wrong_q           <= wrong != '0", "wrong_q           <= 1'b0"},
			{"a row has the elements of the one before", lists, "(begun ? '0 : length_q)", "length_q"},
			{"a long row has its last elements", lists, "(begun ? '0 : length_q)", "32'd0"},
			{"elements of the row before count", lists, "all_elements3_q - last_end", "all_elements3_q"},
			{"what was not sent counts", lists, "else if (issued3_q) begin", "else begin"},
			{"a row's presence of what was not sent", lists, "if (issued3_q) row_present", "row_present"},
			{"a first row has the presence of the one before", lists, "open3_q ? row_present_before_q : first_present_q",
				"row_present_before_q"},
			{"a row's presence is that of its last part", lists, "begun ? last_present : row_present_before;",
				"last_present;"},
			{"a length where no row ends", lists, "begun ? length_q + 32'(ends_q[3:0]) : 32'd0",
				"length_q + 32'(ends_q[3:0])"},
			{"presence behind the rows", lists, "8'((9'd1 << rows_q) - 9'd1)", "8'hff"},
		},
		"plain_decoder": {
			{"values are read before they came", plain, "(available[8:6] != '0) | (bytes <= available[5:0])", "available != '0"},
			{"values of the section's end are not there", plain, "bytes <= available[5:0]", "bytes < available[5:0]"},
			{"a section of four does not end", plain, " | (needed_q == 32'd4)", ""},
			{"a section ends before its last values", plain, "~there | ~full", "~there | (needed_q[31:3] == '0)"},
			{"a section that ends early does not end", plain, "(there | ended)", "there"},
			{"an end without values", plain, "running_q & (there | ended)", "running_q"},
			{"narrow values need the bytes of wide ones", plain, "{1'b0, values, 2'b00}", "{values, 3'b000}"},
			{"narrow values take the bytes of wide ones", plain, "{wide_q, ~wide_q, 4'b0}", "6'd32"},
			{"what a section has too much goes to the next", plain, "done   = issue & last", "done   = 1'b0"},
			{"the next section waits for a value", plain, "running_q | ended | (available != '0)",
				"running_q | (available != '0)"},
			{"the count is that of the section before", plain, "if (!running_q) needed_q <= count_q;\n    else if", "if"},
			{"damage is not seen", plain, "damaged1_q <= ~there", "damaged1_q <= 1'b0"},
			{"a damaged end has values", plain, "there ? values : '0", "values"},
			{"the sign is lost", plain, "{32{signed_q & narrow[31]}}", "32'b0"},
			{"all have a sign", plain, "signed_q & narrow[31]", "narrow[31]"},
			{"wide values are narrow", plain, "wide_q ? window_q[64*lane +: 64] :", ""},
			{"a value behind those that count", plain, "3'(lane) < values1_q", "3'(lane) <= values1_q"},
		},
		"dictionary_gather": {
			{"a second half is not issued", gather, "second_q <= halves & ~second_q", "second_q <= 1'b0"},
			{"a transfer is taken with its first half", gather, "admitted & (second_q | ~halves)", "admitted"},
			{"four indices are two halves", gather, "count > 4'd4", "count >= 4'd4"},
			{"five indices are one half", gather, "count > 4'd4", "count > 4'd5"},
			{"a second half that was not offered", gather, "else if (issue) second_q", "else if (admitted) second_q"},
			{"a second half has the first one's indices", gather, "second_q ? in_data_i[32*(lane+Lanes) +: 32]",
				"1'b0 ? in_data_i[32*(lane+Lanes) +: 32]"},
			{"a second half is full", gather, "3'(count - 4'd4)", "3'd4"},
			{"an index just behind the dictionary", gather, "index_q >= 32'(size_q)", "index_q > 32'(size_q)"},
			{"the high bits of an index", gather, "index_q >= 32'(size_q)", "index_q[IndexWidth:0] >= size_q"},
			{"an index that does not count", gather, "(3'(lane) < values1_q) & (index_q", "(index_q"},
			{"a value behind those that count", gather, "(3'(lane) < values3_q) & ~above", "~above"},
			{"the last half is the first", gather, "in_data_i[260] & in_ready_o", "in_data_i[260]"},
			{"damage of the input is not seen", gather, "damaged_q | faulty3_q", "damaged_q"},
			{"damage is forgotten", gather, "damaged_q | faulty3_q", "faulty3_q"},
			{"damage goes on to the next section", gather, "damaged & ~last3_q", "damaged"},
			{"damage that was not issued", gather, "else if (issued_q[2]) damaged_q", "else damaged_q"},
			{"the dictionary has half the values", gather, "dictionary_q[index_q[IndexWidth-1:0]]",
				"dictionary_q[{1'b0, index_q[IndexWidth-2:0]}]"},
			{"the size is an entry", gather, "(register_address_i[15:IndexWidth] == '0)", "1'b1"},
		},
		"row_packer": {
			{"a full half takes a tile", packer, "in_ready_o  = ~full_q[fill_q]", "in_ready_o  = 1'b1"},
			{"both tiles go to one half", packer, "fill_q  <= fill_q ^ tile_comes", "fill_q  <= fill_q"},
			{"a half is not free again", packer, "~{tile_leaves & drain_q, tile_leaves & ~drain_q}", "2'b11"},
			{"a value that was not offered", packer, "push        = in_valid_i & in_ready_o", "push        = in_ready_o"},
			{"a column too long", packer, "assign column_ends = {1'b0, row_q} + (RowWidth + 1)'(1) == rows_q",
				"assign column_ends = {1'b0, row_q} == rows_q"},
			{"a seventeenth column is the first", packer, "column_q <= column_q + 5'(next_column)",
				"column_q <= {1'b0, 4'(column_q + 5'(next_column))}"},
			{"a column goes on to the next tile", packer, "!rst_ni || tile_comes) begin\n      row_q    <= '0;\n      column_q",
				"!rst_ni) begin\n      row_q    <= '0;\n      column_q"},
			{"a column too many is not seen", packer, "wrong       = column_q[4] | ~column_ends", "wrong       = ~column_ends"},
			{"an end within a column is not seen", packer, "wrong       = column_q[4] | ~column_ends",
				"wrong       = column_q[4]"},
			{"a tile has the columns of the other", packer, "drain_q ? columns_odd_q : columns_even_q", "columns_even_q"},
			{"a tile has the damage of the other", packer, "assign damaged     = wrong_q[drain_q]",
				"assign damaged     = wrong_q[0]"},
			{"a damaged tile has rows", packer, "last        = damaged | (", "last        = ("},
			{"a damaged tile has columns", packer, "damaged ? '0 : columns", "columns"},
			{"the last row does not leave", packer, "{1'b0, read_q} + (RowWidth + 1)'(1) == rows_q",
				"{1'b0, read_q} + (RowWidth + 1)'(2) == rows_q"},
			{"rows leave before there is room", packer, "issue       = full_q[drain_q] & admitted",
				"issue       = full_q[drain_q]"},
			{"a tile begins with the row of the one before", packer, "if (tile_leaves) read_q <= '0;\n      else if (issue)",
				"if (issue)"},
			{"a column behind those of the tile", packer, "5'(column) < count1_q", "5'(column) <= count1_q"},
			{"values go to every column", packer, "push & (column_q == 5'(column))", "push"},
			{"the rows of the other half", packer, "memory_q[{drain_q, read_q}]", "memory_q[{~drain_q, read_q}]"},
		},
		"vocabulary": {
			{"a key comes every cycle", vocab, "in_ready_o = admitted & ~busy_q", "in_ready_o = admitted"},
			{"a key that was not offered", vocab, "issue      = in_valid_i & in_ready_o", "issue      = in_ready_o"},
			{"foreign keys are taken by their low bits", vocab, "in_data_i[63:KeyWidth] == '0", "1'b1"},
			{"the sign alone is looked at", vocab, "in_data_i[63:KeyWidth] == '0", "in_data_i[63] == 1'b0"},
			{"the key before is not known", vocab, "~fixed_q & before_valid_q & (key3", "1'b0 & (key3"},
			{"the key before is that of the section before", vocab, "before_valid_q <= 1'b0", "before_valid_q <= 1'b1"},
			{"a key that was not sent is the one before", vocab,
				"    if (valid3_q && known3_q) begin\n      before_key_q", "    if (known3_q) begin\n      before_key_q"},
			{"a foreign key is the one before", vocab, "    if (valid3_q && known3_q) begin\n      before_key_q",
				"    if (valid3_q) begin\n      before_key_q"},
			{"the key before has another index", vocab, "else if (again) index = before_index_q", "else if (1'b0) index = '0"},
			{"any index is good", vocab, "(held3_q == key3_q) & ({1'b0", "({1'b0"},
			{"keys of the section before", vocab, " & ({1'b0, index3_q} < (fixed_q ? size_q : count_q))", ""},
			{"a host's vocabulary has the keys of another", vocab, "fixed_q ? size_q : count_q", "count_q"},
			{"a host's vocabulary grows", vocab, "known3_q & ~found & ~fixed_q", "known3_q & ~found"},
			{"a foreign key is new", vocab, "is_new = known3_q & ", "is_new = "},
			{"a section goes on with the indices of the one before", vocab,
				"if (!rst_ni || (valid3_q && last3_q)) begin\n      count_q", "if (!rst_ni) begin\n      count_q"},
			{"a foreign last key does not end", vocab,
				"if (!rst_ni || (valid3_q && last3_q)) begin\n      count_q",
				"if (!rst_ni || (valid3_q && last3_q && known3_q)) begin\n      count_q"},
			{"a new key is not written", vocab, "host | (valid3_q & is_new)", "host"},
			{"all keys have one index", vocab, "(KeyWidth + 1)'(is_new)", "'0"},
			{"an absent key has an index", vocab, "found | is_new ? 32'(index) : 32'd0", "32'(index)"},
			{"the registers are keys", vocab, "(register_address_i[15:KeyWidth] == '0)", "1'b1"},
		},
		"log": {
			{"a subnormal operand has exponent 0", sum, "field == '0 ? 8'd1 : field", "field"},
			{"a subnormal operand has a hidden bit", sum, "{magnitude[30:23] != '0, magnitude[22:0]}",
				"{1'b1, magnitude[22:0]}"},
			{"what is moved out is lost", sum, "moved[28:0] != '0}", "moved[28]}"},
			{"a far operand comes near", sum, "distance > 8'd31 ? 5'd31 : distance[4:0]", "distance[4:0]"},
			{"a half is rounded up", sum, "(normal6_q[4] | (normal6_q[2:0] != '0))", "1'b1"},
			{"a half is rounded down", sum, "(normal6_q[4] | (normal6_q[2:0] != '0))", "(normal6_q[2:0] != '0)"},
			{"a carry is lost", sum, "exponent_o <= exponent6_q + $signed({8'b0, rounded[24]})",
				"exponent_o <= exponent6_q"},
			{"a sum is not too great", sum, "infinite6_q | (exponent6_q + $signed({8'b0, rounded[24]}) > 9'sd127)",
				"infinite6_q"},
			{"the sum of two infinities", sum, "(value_i[31] ^ constant_i[31]));\n    infinite1_q", "1'b0);\n    infinite1_q"},
			{"a number below zero has a logarithm", sum, "invalid6_q | (negative6_q", "invalid6_q | (1'b0 & negative6_q"},
			{"a negative zero has none", sum, "infinite6_q | ~zero6_q", "1'b1"},
			{"half of the significand, not of k", ln, "{8'b0, index1 >= 7'd48}", "9'b0"},
			{"the first factor is lost", ln, "base2_q - product2_q", "base2_q"},
			{"the second factor is that of its neighbour", ln, "{index3, 1'b1}", "{index3, 1'b0}"},
			{"the second factor next to 1 is not 1", ln, "(index3 == '0 || index3 == '1) ? '0 : ", ""},
			{"the second product lacks its high part", ln, "46'(low3_q) + {high3_q, 26'b0}", "46'(low3_q)"},
			{"the square lacks its high part", ln, "54'(low_square_q) + {high_square_q, 17'b0}", "54'(low_square_q)"},
			{"nothing stands for the cube", ln, "$signed(~{24'b0, square_q[53:27]})", "-$signed({24'b0, square_q[53:27]})"},
			{"ln 1 is -2^-72", ln, "{79{sum_q[79]}}", "{79{1'b0}}"},
			{"the number's last bit is not rounded", ln, " + 31'(normal20_q[0])", ""},
			{"zero has a logarithm", ln, "else if (zero20)", "else if (1'b0)"},
		},
	}
}

// TestComparisonFindsFaults seeds faults into units, which their cases must find. Each fault takes a build of the
// simulator, so only `make rtl` runs the test. The simulators are kept as those of the units are.
func TestComparisonFindsFaults(t *testing.T) {
	if os.Getenv("MILLRACE_RTL_WHOLE") != "1" {
		t.Skip("`make rtl` runs this test (MILLRACE_RTL_WHOLE=1)")
	}
	cases := byUnit(unitCases(t, 8192, 1))
	for name, faults := range seededFaults() {
		t.Run(name, func(t *testing.T) {
			unit, err := rtl.Named(name)
			require.NoError(t, err)
			cases := cases[name]
			kernels := make([][]uint64, len(cases))
			for i, c := range cases {
				kernels[i] = c.kernel(t, c.stream)
			}
			for _, fault := range faults {
				t.Run(fault.name, func(t *testing.T) {
					simulator := startFaulty(t, unit, fault)
					for i, c := range cases {
						if differs(t, simulator, unit, c, kernels[i]) {
							return
						}
					}
					require.Fail(t, "no case finds the fault")
				})
			}
		})
	}
}

// startFaulty returns a simulator of a unit with a fault.
func startFaulty(t *testing.T, unit rtl.Unit, fault seededFault) *Simulator {
	t.Helper()
	text, err := rtl.Sources.ReadFile(fault.source)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), fault.old), "%s must hold %q once", fault.source, fault.old)
	key := fmt.Sprintf("%s\n%s\n%s", fault.source, fault.old, fault.fault)
	return startChanged(t, unit, "fault", key, func(work string) []string {
		changed := strings.Replace(string(text), fault.old, fault.fault, 1)
		require.NoError(t, os.WriteFile(filepath.Join(work, filepath.FromSlash(fault.source)), []byte(changed), 0o600))
		return unit.Sources
	})
}

// startChanged returns a simulator of what change makes of a unit's sources: it gets the folder that holds them and
// returns the files to compile. The simulator is kept under the digest of the sources and of key, which names the
// change.
func startChanged(t *testing.T, unit rtl.Unit, kind, key string, change func(work string) []string) *Simulator {
	t.Helper()
	verilator, err := exec.LookPath("verilator")
	require.NoError(t, err)
	digest, err := unit.Digest()
	require.NoError(t, err)
	name := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", compilerFlags(unit, digest), key, frameDigest(t)))
	program := filepath.Join(simulatorFolder(t), unit.Name+"-"+kind+"-"+hex.EncodeToString(name[:])[:16])
	if _, err := os.Stat(program); err != nil {
		work := t.TempDir()
		require.NoError(t, writeSources(unit, work))
		changed := unit
		changed.Sources = change(work)
		built, err := verilate(t.Context(), verilator, changed, digest, work, "-Wno-lint", "-Wno-UNOPTFLAT",
			"-MAKEFLAGS", "OPT_FAST=-O0 OPT_GLOBAL=-O0") // the compiler takes longer than the simulator
		require.NoError(t, err)
		require.NoError(t, install(built, program))
	}
	simulator, err := Start(context.Background(), unit, program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, simulator.Close()) })
	return simulator
}

// frameDigest returns the digest of the frame around a simulated unit.
func frameDigest(t *testing.T) string {
	digest := sha256.New()
	for _, name := range frameFiles() {
		frame, err := rtl.Sources.ReadFile(name)
		require.NoError(t, err)
		digest.Write(frame)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// differs reports whether a simulator's results or cycles for a case are not those of the kernel and the description.
func differs(t *testing.T, simulator *Simulator, unit rtl.Unit, c unitCase, kernel []uint64) bool {
	require.NoError(t, simulator.Configure(c.setup))
	stalled := c.stream
	stalled.InputSeed, stalled.OutputSeed = 3, 1
	for _, stream := range []Stream{c.stream, stalled} {
		results, cycles, err := simulator.Run(stream)
		if err != nil {
			return true // the unit stands still
		}
		if stream.OutputSeed == 0 && cycles != uint64(cyclesOf(c, unit)) {
			return true
		}
		if c.read != nil {
			if results, err = c.read(results); err != nil {
				return true
			}
		}
		if !slices.Equal(results, kernel) {
			return true
		}
	}
	return false
}
