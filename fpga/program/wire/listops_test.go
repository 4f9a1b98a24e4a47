package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
)

func TestFixedLengthRefused(t *testing.T) {
	user := func(ops ...program.Op) func(p *program.Program) {
		return func(p *program.Program) { p.Columns[1].Sinks[0].Ops = ops }
	}
	refused(t, embeddings, whole, map[string]refusal[*program.Program]{
		"no length":     {user(fixedlength.Op{}), "fixed_length: length 0, want 1 to 65536"},
		"a long length": {user(fixedlength.Op{Length: program.MaxColumns + 1}), "the output has 6 dense columns"},
		"a length beyond the limit": {func(p *program.Program) {
			p.Output.Dense = program.MaxColumns
			p.Columns[1].Sinks[0] = program.Sink{To: program.ToDense, Ops: []program.Op{fixedlength.Op{Length: math.MaxUint32}}}
		}, "the output has 65536 dense columns"},
		"a pad without padding": {user(fixedlength.Op{Length: 3, Pad: 1}), "fixed_length: pad 1"},
		"a pad that is infinite": {user(fixedlength.Op{Length: 3, Pads: true, Pad: float32(math.Inf(1))}),
			"fixed_length: pad +Inf"},
		"another operator behind": {user(fixedlength.Op{Length: 3}, log.Op{}),
			"a list cannot be dense, unless fixed_length ends"},
		"twice": {user(fixedlength.Op{Length: 3}, fixedlength.Op{Length: 3}),
			"is not the last of a dense list"},
		"none": {user(log.Op{}), "a list cannot be dense, unless fixed_length ends its operators"},
		"of a scalar": {func(p *program.Program) { p.Columns[3].Sinks[0].Ops = []program.Op{fixedlength.Op{Length: 1}} },
			"fixed_length: takes a list"},
		"of whole numbers": {func(p *program.Program) { p.Columns[1].Kind = program.Int64 },
			"fixed_length does not take int64"},
		"of a key": {func(p *program.Program) {
			p.Columns[0] = program.Column{Name: "id", Kind: program.Float32, List: true, Sinks: []program.Sink{{
				To:  program.ToSparse,
				Ops: []program.Op{fixedlength.Op{Length: 1}}}}}
			p.Output.Fixed = false
		}, "is not the last of a dense list"},
		"columns of another": {func(p *program.Program) { p.Columns[1].Sinks[0].Index = 0 },
			"the dense column is written twice"},
		"overlapping lists": {func(p *program.Program) { p.Columns[2].Sinks[0].Index = 3 },
			"the dense column is written twice"},
		"a column short": {func(p *program.Program) { p.Output.Dense = 7 }, "6 of 7 dense columns are written"},
	})
	p := embeddings()
	p.Columns[1].Sinks[0] = program.Sink{
		To:    program.ToDense,
		Index: 6,
		Ops:   []program.Op{fixedlength.Op{Length: program.MaxColumns - 6}},
	}
	p.Columns = append(p.Columns, program.Column{Name: "more", Kind: program.Float32, List: true,
		Sinks: []program.Sink{{To: program.ToDense, Index: 1, Ops: []program.Op{fixedlength.Op{Length: 3}}}}})
	p.Output.Dense = program.MaxColumns
	assert.NoError(t, p.Validate(), "the longest")
}
