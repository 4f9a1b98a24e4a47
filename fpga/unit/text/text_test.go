package text_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/text"
)

func decimal(v int32) string { return strconv.Itoa(int(v)) }

func hex(v uint32) string { return fmt.Sprintf("%08x", v) }

// line joins cells; fields that are not given are "0".
func line(cells map[int]string) string {
	row := make([]string, 1+text.Dense+text.Sparse)
	for i := range row {
		row[i] = "0"
		if c, ok := cells[i]; ok {
			row[i] = c
		}
	}
	return strings.Join(row, "\t")
}

// tail is enough well-formed rows that a line before them is parsed by the fast path.
var tail = strings.Repeat(line(nil)+"\n", 8)

// decodeAll decodes a whole partition, handing over windows that end at the cuts, as the engine does.
func decodeAll(data []byte, o text.Options, n int, cuts ...int) ([]text.Row, text.Counts, error) {
	d, err := text.NewDecoder(o)
	if err != nil {
		return nil, text.Counts{}, err
	}
	var rows []text.Row
	var counts text.Counts
	c := text.NewColumns(n)
	pos := 0
	for _, cut := range append(cuts, len(data)) {
		final := cut == len(data)
		for {
			res, err := d.Decode(c, 0, n, data[pos:cut], final)
			rows = append(rows, collect(c, res.Rows)...)
			counts.Dropped += res.Dropped
			counts.Blank += res.Blank
			counts.Nulled += res.Nulled
			pos += res.Consumed
			if at := d.Position(); at.Offset != int64(pos) {
				return rows, counts, fmt.Errorf("position %d after %d bytes", at.Offset, pos)
			}
			if err != nil {
				return rows, counts, err
			}
			if res.More != (res.Rows < n && !final) {
				return rows, counts, fmt.Errorf("more %v after %d of %d rows, final %v", res.More, res.Rows, n, final)
			}
			if res.Rows < n {
				break
			}
		}
	}
	if pos != len(data) {
		return rows, counts, fmt.Errorf("%d of %d bytes consumed", pos, len(data))
	}
	return rows, counts, nil
}

func collect(c *text.Columns, n int) []text.Row {
	rows := make([]text.Row, n)
	for r := range rows {
		rows[r][0] = text.Cell{Value: c.Label[r], Valid: c.LabelValid[r] == 1}
		for i := range c.Dense {
			rows[r][1+i] = text.Cell{Value: c.Dense[i][r], Valid: c.DenseValid[i][r] == 1}
		}
		for i := range c.Sparse {
			rows[r][1+text.Dense+i] = text.Cell{Value: c.Sparse[i][r], Valid: c.SparseValid[i][r] == 1}
		}
	}
	return rows
}

// equalsReference decodes data both ways and wants the same rows, counts and kind of error.
func equalsReference(t require.TestingT, data []byte, o text.Options, n int, cuts ...int) {
	want, _, wantCounts, wantErr := text.Reference(data, o)
	got, gotCounts, gotErr := decodeAll(data, o, n, cuts...)
	if wantErr == nil {
		require.NoError(t, gotErr)
	} else {
		kind := errors.Unwrap(wantErr)
		require.ErrorIs(t, gotErr, kind)
		var row *text.RowError
		require.ErrorAs(t, gotErr, &row)
		require.True(t, strings.HasPrefix(wantErr.Error(), fmt.Sprintf("line %d:", row.Line)), "%v, %v", wantErr,
			gotErr)
	}
	require.Equal(t, len(want), len(got))
	for r := range want {
		require.Equal(t, want[r], got[r], "row %d", r)
	}
	require.Equal(t, wantCounts, gotCounts)
}

var policies = map[string]text.Policy{"fail": text.Fail, "drop": text.Drop, "null": text.Null}

func TestDecodeCells(t *testing.T) {
	const bad = -1 << 62
	const null = -1 << 61
	cells := []struct {
		cell         string
		decimal, hex int64
	}{
		{"", null, null},
		{"0", 0, 0},
		{"-0", 0, bad},
		{"7", 7, 7},
		{"-1", -1, bad},
		{"12", 12, 0x12},
		{"007", 7, 7},
		{"0000000007", 7, bad},
		{"00000000007", bad, bad},
		{"12345678", 12345678, 0x12345678},
		{"123456789", 123456789, bad},
		{"2147483647", 2147483647, bad},
		{"2147483648", bad, bad},
		{"-2147483648", -2147483648, bad},
		{"-2147483649", bad, bad},
		{"9999999999", bad, bad},
		{"99999999999", bad, bad},
		{"18446744073709551617", bad, bad},
		{"-", bad, bad},
		{"--1", bad, bad},
		{"1-", bad, bad},
		{"+5", bad, bad},
		{" 5", bad, bad},
		{"5 ", bad, bad},
		{"5\r", bad, bad},
		{"\r", bad, bad},
		{"1.0", bad, bad},
		{"1e3", bad, 0x1e3},
		{"nan", bad, bad},
		{"\x00", bad, bad},
		{"/", bad, bad},
		{":", bad, bad},
		{"@", bad, bad},
		{"G", bad, bad},
		{"`", bad, bad},
		{"g", bad, bad},
		{"a", bad, 10},
		{"f", bad, 15},
		{"A", bad, 10},
		{"F", bad, 15},
		{"ffffffff", bad, 0xffffffff},
		{"80000000", 80000000, 0x80000000},
		{"DeadBeef", bad, 0xdeadbeef},
		{"deadbeef", bad, 0xdeadbeef},
		{"g0000000", bad, bad},
		{"0000000g", bad, bad},
		{"0ffffffff", bad, bad},
		{"0x1a", bad, bad},
		{"1_0", bad, bad},
		{"\xb00000000", bad, bad},
		{"0000000\xb0", bad, bad},
		{"٥", bad, bad},
		{"é", bad, bad},
	}
	for _, c := range cells {
		// Before the cell, a label and a decimal whose lengths put it at every alignment of eight bytes.
		for pad := range 8 {
			for _, field := range []int{2, text.Dense, text.Dense + 1, text.Dense + 2, text.Dense + text.Sparse} {
				want, kind := c.decimal, text.ErrDecimal
				if field > text.Dense {
					want, kind = c.hex, text.ErrHex
				}
				text1 := line(map[int]string{1: strings.Repeat("3", pad), field: c.cell}) + "\n"
				for _, data := range []string{text1, text1 + tail} { // the careful path, the fast path
					name := fmt.Sprintf("%q in field %d, pad %d, %d bytes", c.cell, field, pad, len(data))
					got, _, err := decodeAll([]byte(data), text.Options{}, 4)
					// One CR before LF belongs to the line's end, not to its last cell.
					if field == text.Dense+text.Sparse && strings.HasSuffix(c.cell, "\r") {
						require.NoError(t, err, name)
						continue
					}
					if want == bad {
						require.ErrorIs(t, err, kind, name)
						var row *text.RowError
						require.ErrorAs(t, err, &row)
						require.Equal(t, field, row.Field, name)
						require.Equal(t, int64(1), row.Line)
						require.Empty(t, got)
						got, counts, err := decodeAll([]byte(data), text.Options{Policy: text.Null}, 4)
						require.NoError(t, err)
						require.Equal(t, int64(1), counts.Nulled)
						require.Equal(t, text.Cell{}, got[0][field], name)
						require.Equal(t, text.Cell{Valid: true}, got[0][(field+20)%40], name)
						continue
					}
					require.NoError(t, err, name)
					cell := text.Cell{Value: want, Valid: true}
					if want == null {
						cell = text.Cell{}
					}
					require.Equal(t, cell, got[0][field], name)
				}
			}
		}
	}
}

func TestDecodeLabel(t *testing.T) {
	for _, c := range []struct {
		cell string
		want int64
		ok   bool
	}{{"0", 0, true}, {"1", 1, true}, {"-1", -1, true}, {"2147483647", 2147483647, true}, {"", 0, false},
		{"x", 0, false}, {"2147483648", 0, false}} {
		for _, more := range []string{"", tail} {
			data := []byte(line(map[int]string{0: c.cell}) + "\n" + more)
			got, _, err := decodeAll(data, text.Options{}, 100)
			if !c.ok {
				require.ErrorIs(t, err, text.ErrLabel, c.cell)
				require.ErrorContains(t, err, "field 0 (label): label is not an integer from -2147483648 to 2147483647")
				got, _, err = decodeAll(data, text.Options{Policy: text.Null}, 100)
				require.NoError(t, err)
				require.Equal(t, text.Cell{}, got[0][0])
				continue
			}
			require.NoError(t, err)
			require.Equal(t, text.Cell{Value: c.want, Valid: true}, got[0][0])
		}
	}
}

// lines are whole lines, good and bad, that the tests put together in every order.
var lines = map[string]string{
	"plain":         line(nil) + "\n",
	"crlf":          line(map[int]string{39: "beef"}) + "\r\n",
	"empty last":    line(map[int]string{39: ""}) + "\n",
	"empty last cr": line(map[int]string{39: ""}) + "\r\n",
	"all empty":     "1" + strings.Repeat("\t", 39) + "\n",
	"blank":         "\n",
	"blank cr":      "\r\n",
	"two cr":        line(nil) + "\r\r\n",
	"39 fields":     strings.Repeat("0\t", 38) + "0\n",
	"41 fields":     strings.Repeat("0\t", 40) + "0\n",
	"one field":     "0\n",
	"bad decimal":   line(map[int]string{5: "x"}) + "\n",
	"bad hex":       line(map[int]string{20: "x"}) + "\n",
	"bom":           "\xef\xbb\xbf" + line(nil) + "\n",
	"nul":           line(map[int]string{1: "\x00"}) + "\n",
	"longest": "-2147483648" + strings.Repeat("\t-2147483648", text.Dense) + strings.Repeat("\tffffffff", text.Sparse) +
		"\r\n",
	"no newline":    line(map[int]string{39: "77"}),
	"no newline cr": line(nil) + "\r",
	"cr":            "\r",
}

func TestDecodeLines(t *testing.T) {
	for name, l := range lines {
		for policyName, policy := range policies {
			for _, labelAbsent := range []bool{false, true} {
				o := text.Options{Policy: policy, LabelAbsent: labelAbsent}
				t.Run(fmt.Sprintf("%s/%s/label absent %v", name, policyName, labelAbsent), func(t *testing.T) {
					equalsReference(t, []byte(l), o, 3)
					equalsReference(t, []byte(lines["plain"]+l), o, 3)
					equalsReference(t, []byte(l+tail), o, 3)
					equalsReference(t, []byte(lines["crlf"]+l+tail+lines["blank"]), o, 3)
				})
			}
		}
	}
}

func TestDecodeLabelAbsent(t *testing.T) {
	for _, more := range []string{"", strings.Repeat(strings.Repeat("0\t", 38)+"0\n", 8)} {
		data := "5" + strings.Repeat("\t6", 12) + strings.Repeat("\ta", 26) + "\n" + more
		got, _, err := decodeAll([]byte(data), text.Options{LabelAbsent: true}, 100)
		require.NoError(t, err)
		require.Equal(t, text.Cell{}, got[0][0])
		require.Equal(t, text.Cell{Value: 5, Valid: true}, got[0][1])
		require.Equal(t, text.Cell{Value: 10, Valid: true}, got[0][39])
	}
	_, _, err := decodeAll([]byte("x"+strings.Repeat("\t", 38)), text.Options{LabelAbsent: true}, 1)
	require.ErrorContains(t, err, "line 1 (byte 0): field 0 (int_0)")
}

// Every way to cut a small partition into two windows, and into windows of every size, gives the same rows.
func TestDecodeAtEverySplit(t *testing.T) {
	order := []string{
		"bom", "crlf", "blank", "longest", "bad decimal", "41 fields", "all empty", "blank cr", "empty last cr",
		"bad hex", "plain", "empty last", "no newline",
	}
	var data []byte
	for _, name := range order {
		data = append(data, lines[name]...)
	}
	for name, policy := range policies {
		if policy == text.Fail {
			continue // stops at the first bad line: TestDecodeLines
		}
		t.Run(name, func(t *testing.T) {
			o := text.Options{Policy: policy}
			for cut := range len(data) {
				equalsReference(t, data, o, 1+cut%5, cut)
			}
			for step := 1; step < 500; step += 7 {
				var cuts []int
				for at := step; at < len(data); at += step {
					cuts = append(cuts, at)
				}
				equalsReference(t, data, o, 4, cuts...)
			}
		})
	}
	good := []byte(lines["longest"] + lines["crlf"] + lines["all empty"] + lines["no newline"])
	for cut := range len(good) {
		equalsReference(t, good, text.Options{}, 2, cut)
	}
}

func TestDecodeStopsAtTheBadLine(t *testing.T) {
	data := []byte(lines["plain"] + lines["blank"] + lines["crlf"] + lines["bad hex"] + tail)
	d, err := text.NewDecoder(text.Options{})
	require.NoError(t, err)
	c := text.NewColumns(16)
	res, err := d.Decode(c, 4, 10, data, true)
	var row *text.RowError
	require.ErrorAs(t, err, &row)
	at := int64(len(lines["plain"] + lines["blank"] + lines["crlf"]))
	assert.Equal(t, &text.RowError{Line: 4, Offset: at, Field: 20, Name: "cat_6", Err: text.ErrHex}, row)
	assert.Equal(t, text.Result{Rows: 2, Consumed: int(at), Counts: text.Counts{Blank: 1}}, res)
	assert.Equal(t, text.Position{Offset: at, Line: 3}, d.Position())
	assert.Equal(t, int64(0xbeef), c.Sparse[25][5], "rows begin at first")
	res, again := d.Decode(c, 0, 10, data[at:], true)
	assert.Zero(t, res)
	assert.Equal(t, err, again)
}

func TestDecodeFromAPosition(t *testing.T) {
	// The mark is skipped at the partition's start only.
	d, err := text.NewDecoder(text.Options{})
	require.NoError(t, err)
	d.Reset(text.Position{Offset: 1000, Line: 9})
	_, err = d.Decode(text.NewColumns(1), 0, 1, []byte(lines["bom"]), true)
	require.ErrorContains(t, err, "line 10 (byte 1000): field 0 (label)")
}

func TestDecodeLongLines(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			o := text.Options{Policy: policy}
			for _, n := range []int{text.MaxLine - 1, text.MaxLine, text.MaxLine + 1} {
				for _, end := range []string{"", "\n", "\n" + tail} {
					equalsReference(t, []byte(lines["plain"]+long(n)+end), o, 3)
					equalsReference(t, []byte(lines["plain"]+long(n)+end), o, 3, 100, 1000, 60000)
				}
			}
			// Too long is said as soon as it is certain, without the line's end.
			d, err := text.NewDecoder(o)
			require.NoError(t, err)
			c := text.NewColumns(1)
			res, err := d.Decode(c, 0, 1, []byte(long(text.MaxLine)), false)
			require.NoError(t, err)
			require.True(t, res.More)
			_, err = d.Decode(c, 0, 1, []byte(long(text.MaxLine+1)), false)
			require.ErrorIs(t, err, text.ErrLineTooLong)
		})
	}
}

func TestDecodeKeepsOnlyWhatIsWanted(t *testing.T) {
	data := criteoLike(3, 100)
	all, some := text.NewColumns(100), &text.Columns{}
	some.Dense[3], some.SparseValid[7] = make([]int64, 100), make([]byte, 100)
	for _, c := range []*text.Columns{all, some} {
		d, err := text.NewDecoder(text.Options{})
		require.NoError(t, err)
		res, err := d.Decode(c, 0, 100, data, true)
		require.NoError(t, err)
		require.Equal(t, 100, res.Rows)
	}
	assert.Equal(t, all.Dense[3], some.Dense[3])
	assert.Equal(t, all.SparseValid[7], some.SparseValid[7])
}

func TestDecodeRefusesWhatDoesNotFit(t *testing.T) {
	_, err := text.NewDecoder(text.Options{Policy: 3})
	require.ErrorIs(t, err, text.ErrOptions)
	_, err = text.NewIndex(strings.NewReader(""), text.Options{Policy: 3}, 0)
	require.ErrorIs(t, err, text.ErrOptions)
	d, err := text.NewDecoder(text.Options{})
	require.NoError(t, err)
	c := text.NewColumns(4)
	for _, bounds := range [][2]int{{0, 5}, {4, 1}, {-1, 2}, {0, -1}, {1 << 62, 1 << 62}} {
		_, err = d.Decode(c, bounds[0], bounds[1], []byte(tail), true)
		require.ErrorIs(t, err, text.ErrColumns)
		_, err = text.DecodeBinary(c, bounds[0], bounds[1], nil, text.Position{}, true)
		require.ErrorIs(t, err, text.ErrColumns)
	}
	c.SparseValid[25] = c.SparseValid[25][:3]
	_, err = d.Decode(c, 0, 4, []byte(tail), true)
	require.ErrorIs(t, err, text.ErrColumns)
	c = text.NewColumns(4)
	c.Label = c.Label[:3]
	_, err = d.Decode(c, 0, 4, []byte(tail), true)
	require.ErrorIs(t, err, text.ErrColumns)
	res, err := d.Decode(c, 0, 3, []byte(tail), true)
	require.NoError(t, err)
	require.Equal(t, 3, res.Rows)
}

func TestDecodeEqualsReference(t *testing.T) {
	cell := rapid.OneOf(
		rapid.Just(""),
		rapid.Map(rapid.Int32(), decimal),
		rapid.Map(rapid.Int32Range(-1, 1000), decimal),
		rapid.Map(rapid.Uint32(), hex),
		rapid.StringMatching(`[0-9a-fA-F]{0,9}`),
		rapid.StringMatching(`-?[0-9]{1,11}`),
	)
	row := rapid.Custom(func(t *rapid.T) string {
		cells := map[int]string{}
		for i := range 40 {
			if i <= text.Dense {
				cells[i] = rapid.Map(rapid.Int32(), decimal).Draw(t, "dense")
			} else {
				cells[i] = rapid.Map(rapid.Uint32(), hex).Draw(t, "sparse")
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "odd cells") {
			cells[rapid.IntRange(0, 39).Draw(t, "field")] = cell.Draw(t, "cell")
		}
		return line(cells) + rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\n\n", "\t\n", "\r\r\n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOfN(row, 0, 12).Draw(t, "rows"), ""))
		data = data[:len(data)-rapid.IntRange(0, len(data)).Draw(t, "cut")*rapid.IntRange(0, 1).Draw(t, "cuts")]
		o := text.Options{
			Policy:      rapid.SampledFrom([]text.Policy{text.Fail, text.Drop, text.Null}).Draw(t, "policy"),
			LabelAbsent: rapid.Bool().Draw(t, "label absent"),
		}
		var cuts []int
		if len(data) > 0 && o.Policy != text.Fail {
			cuts = append(cuts, rapid.IntRange(0, len(data)-1).Draw(t, "split"))
		}
		equalsReference(t, data, o, rapid.IntRange(1, 70).Draw(t, "n"), cuts...)
	})
}
