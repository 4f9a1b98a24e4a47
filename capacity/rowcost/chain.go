package rowcost

import (
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
)

// chain counts the operators of a chain over a mean length, and returns the mean length behind it. The model has a rate
// for three operators, those of the paper's workloads; all others are beyond it.
func (c *counter) chain(ops []program.Op, length float64) float64 {
	for _, op := range ops {
		switch o := op.(type) {
		case *bucketize.Op:
			c.cost.Row.Bucketized += length
			c.cost.Borders += float64(len(o.Borders32) + len(o.Borders64) + len(o.BordersInt))
		case sigridhash.Op:
			c.cost.Row.Hashed += length
		case log.Op:
			c.cost.Row.Logged += length
		default:
			c.beyond(op.Unit())
			length = program.MeanElements(op, length, c.assume)
		}
	}
	return length
}

// graph counts the steps and sinks of a graph. lengths are those of its columns.
func (c *counter) graph(columns []program.Column, lengths []float64, g *program.Graph) {
	values := make([]float64, 0, len(columns)+len(g.Steps))
	types := make([]program.ValueType, 0, len(columns)+len(g.Steps))
	for _, v := range program.GraphValues(columns) {
		values, types = append(values, lengths[v.Column]), append(types, v.Type)
	}
	for i := range g.Steps {
		s := &g.Steps[i]
		length, made := values[s.Inputs[0]], types[s.Inputs[0]]
		if s.Combine != nil {
			c.beyond(s.Combine.Unit())
			var of []float64
			var inputs []program.ValueType
			for _, n := range s.Inputs {
				of, inputs = append(of, values[n]), append(inputs, types[n])
			}
			made, _ = s.Combine.Yield(inputs) // the program is valid
			length = program.MeanCombined(s.Combine, of, made, c.assume)
		}
		for _, op := range s.Ops {
			made.Kind = op.Out(made.Kind)
		}
		values, types = append(values, c.chain(s.Ops, length)), append(types, made)
	}
	for i := range g.Sinks {
		c.sink(&g.Sinks[i].Sink, values[g.Sinks[i].Value])
	}
}
