package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// textTables is a program whose operators share a table of texts.
func textTables() *program.Program {
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 3}}
	keys := []string{"", "no", "yes", "é"}
	for i, o := range []*maptext.Op{
		{Keys: keys, Values: []int64{-1, 0, 1, 2}},
		{Keys: keys, Values: []int64{-1, 0, 1, 2}, Unknown: maptext.UnknownDefault, Default: 1 << 40},
		{Keys: []string{"a"}, Values: []int64{7}, Unknown: maptext.UnknownNull},
	} {
		p.Columns = append(p.Columns, program.Column{Name: "c", Kind: program.Bytes,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{o}}}})
	}
	return p
}

func TestATableOfTextsIsWrittenOnce(t *testing.T) {
	b := wire.Marshal(textTables())
	assert.Equal(t, 1, bytes.Count(b, []byte("noyesé")))
	q, err := operator.Unmarshal(b)
	require.NoError(t, err)
	first, second := q.Columns[0].Sinks[0].Ops[0].(*maptext.Op), q.Columns[1].Sinks[0].Ops[0].(*maptext.Op)
	assert.Same(t, &first.Keys[0], &second.Keys[0])
}

// TestTextTablesThatAreRefused checks every limit of tables of texts from both sides, before and behind the wire form.
func TestTextTablesThatAreRefused(t *testing.T) {
	many := func(n int) *maptext.Op {
		o := &maptext.Op{Values: make([]int64, n)}
		for i := range n {
			o.Keys = append(o.Keys, fmt.Sprintf("%05d", i))
		}
		return o
	}
	text := func(keys ...string) *maptext.Op { return &maptext.Op{Keys: keys, Values: make([]int64, len(keys))} }
	for name, c := range map[string]struct {
		op   *maptext.Op
		want string
	}{
		"most texts":      {many(program.MaxTexts), ""},
		"too many texts":  {many(program.MaxTexts + 1), "65537 texts, want 1 to 65536"},
		"no texts":        {&maptext.Op{}, "0 texts, want 1 to 65536"},
		"longest text":    {text(strings.Repeat("x", program.MaxTextBytes)), ""},
		"too long a text": {text(strings.Repeat("x", program.MaxTextBytes+1)), "text 0 has 4097 bytes, want at most 4096"},
		"not UTF-8":       {text("a", "\xff"), `text 1 ("\xff") is not UTF-8`},
		"twice":           {text("a", "a"), `text 1 ("a") is not above the one before`},
		"descending":      {text("b", "a"), `text 1 ("a") is not above the one before`},
		"fewer values":    {&maptext.Op{Keys: []string{"a", "b"}, Values: []int64{1}}, "2 texts and 1 values"},
		"another rule":    {&maptext.Op{Keys: []string{"a"}, Values: []int64{1}, Unknown: 3}, "unknown(3) is not a rule"},
		"a lonely default": {&maptext.Op{Keys: []string{"a"}, Values: []int64{1}, Default: 1},
			"a default that no text becomes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := textTables()
			p.Columns[0].Sinks[0].Ops = []program.Op{c.op}
			_, err := operator.Unmarshal(wire.Marshal(p))
			if c.want == "" {
				require.NoError(t, p.Validate())
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, p.Validate(), c.want)
			require.Error(t, err)
		})
	}
	numbers := textTables()
	numbers.Columns[0].Kind = program.Int64
	require.ErrorContains(t, numbers.Validate(), "map_text does not take int64")
}
