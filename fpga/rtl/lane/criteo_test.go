package lane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl/lane"
	"github.com/millrace/millrace/fpga/unit/text"
)

// drawLines draws lines of Criteo's text behind a byte order mark, among them empty ones; one in bad is malformed, if
// any. The last has no line end.
func drawLines(n, bad int, label bool) []byte {
	draw := rand.New(rand.NewPCG(5, 16))
	b := bytes.NewBufferString("\xef\xbb\xbf")
	for line := range n {
		if label {
			fmt.Fprintf(b, "%d\t", draw.IntN(2))
		}
		for range text.Dense {
			if draw.IntN(4) > 0 {
				fmt.Fprint(b, int32(draw.Uint32())>>draw.IntN(32))
			}
			b.WriteByte('\t')
		}
		for field := range text.Sparse {
			switch {
			case bad > 0 && field == 1 && draw.IntN(bad) == 0:
				b.WriteString([]string{"x", "123456789", "1\t"}[draw.IntN(3)])
			case draw.IntN(4) > 0:
				fmt.Fprintf(b, "%x", draw.Uint32())
			}
			if field < text.Sparse-1 {
				b.WriteByte('\t')
			}
		}
		if line < n-1 {
			b.WriteString([]string{"\n", "\r\n", "\n\n"}[draw.IntN(3)])
		}
	}
	return b.Bytes()
}

// textProgram returns a program over text: chains that unit lane has and chains that it has not.
func textProgram(label bool, malformed program.Malformed) *program.Program {
	named := func(c program.Column, field uint16) program.Column {
		c.Name, c.Field = text.FieldName(int(field)), field
		return c
	}
	zero := fillnull.Op{}
	columns := []program.Column{
		named(sparse("", program.Int64), 14),
		named(sparse("", program.Int64, fill, hash), 15),
		named(sparse("", program.Int64, hash, zero), 39),
		named(sparse("", program.Int64, fill, toFloat, buckets), 2),
		named(dense("", program.Int64, zero, clamp.Op{IntHi: math.MaxInt64}, toFloat, log.Op{Add: 1}), 1),
		named(dense("", program.Int64, fill, toFloat), 13),
	}
	if label {
		c := named(dense("", program.Int64, zero, toFloat), 0)
		c.Sinks[0].To = program.ToLabel
		columns = append(columns, c)
	}
	p := programOf(columns...)
	p.Source, p.Label, p.Malformed = program.CriteoTSV, label, malformed
	return p
}

// TestTextIsTheReferences makes mini-batches of text by simulated units and by the definition, over the rows of one
// entry of the index and of several.
func TestTextIsTheReferences(t *testing.T) {
	s := lane.Simulate(t)
	for name, c := range map[string]struct {
		bad       int
		label     bool
		malformed program.Malformed
	}{
		"good":             {0, true, program.MalformedFail},
		"without a label":  {0, false, program.MalformedFail},
		"malformed: drop":  {5, true, program.MalformedDrop},
		"malformed: nulls": {5, true, program.MalformedNull},
	} {
		t.Run(name, func(t *testing.T) {
			p := textProgram(c.label, c.malformed)
			require.NoError(t, lane.Check(p))
			data := drawLines(300, c.bad, c.label)
			o := text.Options{LabelAbsent: !c.label, Policy: text.Policy(c.malformed)}
			index, err := text.NewIndex(bytes.NewReader(data), o, 64)
			require.NoError(t, err)
			simulated, err := s.NewTextReader(p, lane.TextPartition{Data: bytes.NewReader(data), Index: index, Options: o})
			require.NoError(t, err)
			defined, err := reference.NewText(p, data)
			require.NoError(t, err)
			rows := int(defined.Rows())
			require.Equal(t, index.Rows, defined.Rows())
			for _, cut := range [][2]int{{0, rows}, {0, 64}, {63, 2}, {rows - 1, 1}, {rows, 0}} {
				want, err := defined.MiniBatch(int64(cut[0]), cut[1])
				require.NoError(t, err)
				got, err := simulated.MiniBatch(int64(cut[0]), cut[1])
				require.NoError(t, err)
				requireTensors(t, want, got)
			}
			_, err = simulated.MiniBatch(int64(rows), 1)
			require.ErrorContains(t, err, fmt.Sprintf("rows %d+1 of %d", rows, rows))
		})
	}
	requireReport(t, s.Report(), []string{"fill_null", "lane", "plain_decoder", "row_packer", "sigrid_hash",
		"text_decoder"})
}

// TestBinaryIsTheReferences makes mini-batches of binary rows by simulated units and by the definition, over one row
// group and two.
func TestBinaryIsTheReferences(t *testing.T) {
	s := lane.Simulate(t)
	p := textProgram(true, program.MalformedFail)
	p.Source = program.CriteoBinary
	require.NoError(t, lane.Check(p))
	const rows = 1030
	data, draw := make([]byte, rows*text.BinaryRow), rand.New(rand.NewPCG(8, 16))
	for at := 0; at < len(data); at += 4 {
		binary.LittleEndian.PutUint32(data[at:], draw.Uint32()) // half of them negative in dense
	}
	simulated, err := s.NewBinaryReader(p, bytes.NewReader(data), rows)
	require.NoError(t, err)
	defined, err := reference.NewText(p, data)
	require.NoError(t, err)
	for _, cut := range [][2]int{{0, 64}, {1020, 10}, {rows - 1, 1}, {rows, 0}} {
		want, err := defined.MiniBatch(int64(cut[0]), cut[1])
		require.NoError(t, err)
		got, err := simulated.MiniBatch(int64(cut[0]), cut[1])
		require.NoError(t, err)
		requireTensors(t, want, got)
	}
	_, err = simulated.MiniBatch(rows, 1)
	require.ErrorContains(t, err, "rows 1030+1 of 1030")

	short, err := s.NewBinaryReader(p, bytes.NewReader(data[:len(data)-1]), rows)
	require.NoError(t, err)
	_, err = short.MiniBatch(rows-1, 1)
	require.ErrorContains(t, err, "file ends at byte 164799")
	_, err = s.NewBinaryReader(textProgram(true, program.MalformedFail), nil, 0)
	require.ErrorContains(t, err, "was given a partition of binary rows")
}

// TestTextIsDecodedOnce checks that the columns of a mini-batch share what the unit made of its rows, and that a
// mini-batch shares it with the next one that begins in the same rows.
func TestTextIsDecodedOnce(t *testing.T) {
	s := lane.Simulate(t)
	data := drawLines(40, 0, true)
	index, err := text.NewIndex(bytes.NewReader(data), text.Options{}, 8)
	require.NoError(t, err)
	r, err := s.NewTextReader(textProgram(true, program.MalformedFail),
		lane.TextPartition{Data: bytes.NewReader(data), Index: index})
	require.NoError(t, err)
	for _, cut := range []struct{ first, rows, sections int }{{0, 20, 3}, {20, 12, 4}, {32, 8, 5}, {24, 8, 6},
		{0, 40, 10}} {
		_, err := r.MiniBatch(int64(cut.first), cut.rows)
		require.NoError(t, err)
		for _, u := range s.Report().Units {
			if u.Unit == "text_decoder" {
				require.EqualValues(t, cut.sections, u.Sections, "rows %d+%d", cut.first, cut.rows)
			}
		}
	}
}

// TestTextThatIsRefused checks the errors of partitions of text that do not fit their program or their index.
func TestTextThatIsRefused(t *testing.T) {
	s := lane.Simulate(t)
	data := drawLines(20, 0, true)
	indexOf := func(every int64) *text.Index {
		index, err := text.NewIndex(bytes.NewReader(data), text.Options{}, every)
		require.NoError(t, err)
		return index
	}
	part := lane.TextPartition{Data: bytes.NewReader(data), Index: indexOf(8)}
	p := textProgram(true, program.MalformedFail)
	refused := func(p *program.Program, part lane.TextPartition, want string) {
		t.Helper()
		_, err := s.NewTextReader(p, part)
		require.ErrorContains(t, err, want)
	}
	refused(programOf(sparse("id", program.Int64)), part, "was given a partition of text")
	other := part
	other.Options.Policy = text.Drop
	refused(p, other, "indexed with other options")
	refused(textProgram(false, program.MalformedFail), part, "indexed with other options")
	other = part
	other.Index = indexOf(0)
	refused(p, other, "says of no row where it begins")
	_, err := s.NewReader(p, nil, nil)
	require.ErrorContains(t, err, "was given a Parquet file")

	changed := bytes.Replace(data, []byte("\n"), []byte("\t"), 1)
	r, err := s.NewTextReader(p, lane.TextPartition{Data: bytes.NewReader(changed), Index: part.Index})
	require.NoError(t, err)
	_, err = r.MiniBatch(0, 1)
	require.ErrorIs(t, err, lane.ErrData)
	var bad *text.RowError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, text.RowError{Line: 1, Offset: 3, Field: -1, Err: text.ErrFieldCount}, *bad)
	_, err = r.MiniBatch(8, 1)
	require.NoError(t, err)

	shorter := *part.Index
	shorter.Rows = 19
	r, err = s.NewTextReader(p, lane.TextPartition{Data: bytes.NewReader(data), Index: &shorter})
	require.NoError(t, err)
	_, err = r.MiniBatch(18, 1)
	require.ErrorIs(t, err, lane.ErrData)
	require.ErrorContains(t, err, "4 rows of text")
}
