package rowcost

import (
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
)

// chain counts the operators of a chain over a mean length, and returns the mean length behind it.
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
			length = c.resize(op, length)
		}
	}
	return length
}

// resize returns the mean length of what an operator makes of a list of a mean length.
func (c *counter) resize(op program.Op, length float64) float64 {
	switch o := op.(type) {
	case firstx.Op:
		return c.atMost(float64(o.N), length)
	case listslice.Op:
		return c.slice(o, length)
	case ngram.Op:
		windows := max(length-float64(o.N)+1, 0)
		if o.N > 1 {
			c.assume("lists have their mean length where ngram counts windows: %.4g ids make %.4g windows of %d", length,
				windows, o.N)
		}
		if o.Mode == ngram.RAP {
			return max(windows, min(length, 1)) * min(float64(o.N), max(length, 1))
		}
		return windows
	case fixedlength.Op:
		return float64(o.Length)
	case onehot.Op:
		return float64(o.Classes)
	}
	return length
}

// atMost returns the mean length of lists that are cut to a length.
func (c *counter) atMost(most, length float64) float64 {
	if most < length {
		return most
	}
	c.assume("lists have their mean length where they are cut: the first %.0f of %.4g ids are all of them", most, length)
	return length
}

// slice returns the mean length of parts of lists.
func (c *counter) slice(o listslice.Op, length float64) float64 {
	if part, err := o.Length(); err == nil {
		if o.Padded {
			return float64(part)
		}
		// A part that begins further in than the list is long has fewer ids, or none.
		from := float64(max(o.Start, 0))
		if o.Start < 0 {
			from = max(-float64(o.Start)-float64(part), 0) // ids behind the part
		}
		return c.atMost(float64(part), max(length-from, 0))
	}
	start, end := float64(o.Start), length
	if o.Start < 0 {
		start = max(length+start, 0)
	}
	if o.End != listslice.NoEnd {
		end = min(float64(o.End), length)
	}
	if o.End < 0 {
		end = max(length+float64(o.End), 0)
	}
	c.assume("lists have their mean length where parts of them are kept: list[%d:] of %.4g ids", o.Start, length)
	return max(end-start, 0)
}

// graph counts the steps and sinks of a graph. lengths are those of its columns.
func (c *counter) graph(columns []program.Column, lengths []float64, g *program.Graph) {
	values := make([]float64, 0, len(columns)+len(g.Steps))
	for _, v := range program.GraphValues(columns) {
		values = append(values, lengths[v.Column])
	}
	for i := range g.Steps {
		s := &g.Steps[i]
		length := values[s.Inputs[0]]
		if s.Combine != nil {
			c.beyond(s.Combine.Unit())
			length = c.combine(s, values)
		}
		values = append(values, c.chain(s.Ops, length))
	}
	for i := range g.Sinks {
		c.sink(&g.Sinks[i].Sink, values[g.Sinks[i].Value])
	}
}

// combine returns the mean length of what a step makes of its inputs.
func (c *counter) combine(s *program.Step, values []float64) float64 {
	first := values[s.Inputs[0]]
	switch o := s.Combine.(type) {
	case cartesian.Op:
		return c.atMost(float64(o.MaxLength), first*values[s.Inputs[1]])
	case computescore.Op, hashcross.Op:
		return 1
	case idlisttransform.Op:
		c.assume("id_list_transform keeps every id of its first input: footers do not say how many are in the second")
	}
	return first
}
