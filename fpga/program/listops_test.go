package program

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFixedLengthRefused(t *testing.T) {
	user := func(ops ...Op) func(p *Program) { return func(p *Program) { p.Columns[1].Sinks[0].Ops = ops } }
	for name, c := range map[string]struct {
		change func(p *Program)
		want   string
	}{
		"no length":     {user(FixedLength{}), "fixed_length: length 0, want 1 to 65536"},
		"a long length": {user(FixedLength{Length: MaxColumns + 1}), "the output has 6 dense columns"},
		"a length beyond the limit": {func(p *Program) {
			p.Output.Dense = MaxColumns
			p.Columns[1].Sinks[0] = Sink{To: ToDense, Ops: []Op{FixedLength{Length: math.MaxUint32}}}
		}, "the output has 65536 dense columns"},
		"a pad without padding": {user(FixedLength{Length: 3, Pad: 1}), "fixed_length: pad 1"},
		"a pad that is infinite": {user(FixedLength{Length: 3, Pads: true, Pad: float32(math.Inf(1))}),
			"fixed_length: pad +Inf"},
		"another operator behind": {user(FixedLength{Length: 3}, Log{}), "a list cannot be dense, unless fixed_length ends"},
		"twice":                   {user(FixedLength{Length: 3}, FixedLength{Length: 3}), "is not the last of a dense list"},
		"none":                    {user(Log{}), "a list cannot be dense, unless fixed_length ends its operators"},
		"of a scalar": {func(p *Program) { p.Columns[3].Sinks[0].Ops = []Op{FixedLength{Length: 1}} },
			"fixed_length: takes a list"},
		"of whole numbers": {func(p *Program) { p.Columns[1].Kind = Int64 }, "fixed_length does not take int64"},
		"of a key": {func(p *Program) {
			p.Columns[0] = Column{Name: "id", Kind: Float32, List: true, Sinks: []Sink{{To: ToSparse,
				Ops: []Op{FixedLength{Length: 1}}}}}
			p.Output.Fixed = false
		}, "is not the last of a dense list"},
		"columns of another": {func(p *Program) { p.Columns[1].Sinks[0].Index = 0 }, "the dense column is written twice"},
		"overlapping lists":  {func(p *Program) { p.Columns[2].Sinks[0].Index = 3 }, "the dense column is written twice"},
		"a column short":     {func(p *Program) { p.Output.Dense = 7 }, "6 of 7 dense columns are written"},
	} {
		t.Run(name, func(t *testing.T) {
			p := embeddings()
			c.change(p)
			require.ErrorContains(t, p.Validate(), c.want)
		})
	}
	p := embeddings()
	p.Columns[1].Sinks[0] = Sink{To: ToDense, Index: 6, Ops: []Op{FixedLength{Length: MaxColumns - 6}}}
	p.Columns = append(p.Columns, Column{Name: "more", Kind: Float32, List: true,
		Sinks: []Sink{{To: ToDense, Index: 1, Ops: []Op{FixedLength{Length: 3}}}}})
	p.Output.Dense = MaxColumns
	assert.NoError(t, p.Validate(), "the longest")
}
