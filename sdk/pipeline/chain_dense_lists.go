package pipeline

import (
	"slices"
	"strconv"

	"github.com/millrace/millrace/fpga/program"
)

func checkFixedLength(p *problems, o *Op, a location) {
	if n, ok := o.arg("length"); ok && n.Value.(Number).Int > program.MaxColumns {
		p.add(a.key("length", firstPos(n.Pos, a.pos)), ErrValue, "%s, want at most %d", n.Value, program.MaxColumns)
	}
}

func applyFixedLength(c *chain, o *Op, a location) {
	switch {
	case !c.column.List && c.kind == program.Bytes:
		c.refuse(a, ErrColumnType, "fixed_length takes lists of numbers, and this column has bytes: write the numbers "+
			"that the bytes hold as a list, as list<float>")
		return
	case !c.column.List:
		c.refuse(a, ErrColumnType, "fixed_length takes lists, and this column has one value a row")
		return
	case !c.denseList:
		c.refuse(a, ErrColumnType, "fixed_length makes dense columns; keys take lists of any length")
		return
	case c.column.Map.IsMap():
		c.refuse(a, ErrUnsupported, "fixed_length of a map's lists; write them as a column of their own")
		return
	case !c.requireNumbers(o, a):
		return
	}
	c.convert(program.Float32)
	f := program.FixedLength{Length: uint32(c.number(o, "length").Int)}
	if pad, ok := o.arg("pad"); ok {
		f.Pads, f.Pad = true, float32(c.realNumber(o, pad.Value.(Number), "pad", a))
	}
	c.nulls = nullness{fills: true} // a null list is filled up, or fails
	c.appendOp(f)
}

// makesDense reports whether operators make dense columns of a list.
func makesDense(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return o.Name == "fixed_length" })
}

// Width returns how many neighbouring columns of the dense tensor a dense feature has.
func (f *Feature) Width() int {
	if n := len(f.Ops); n > 0 {
		switch o := f.Ops[n-1].(type) {
		case program.FixedLength:
			return int(o.Length)
		case program.OneHot:
			return int(o.Classes)
		}
	}
	return 1
}

// columnNames returns the names of the feature's columns in the dense tensor, or of its key.
func (f *Feature) columnNames() []string {
	if n := len(f.Ops); n > 0 {
		switch f.Ops[n-1].(type) {
		case program.FixedLength, program.OneHot:
			names := make([]string, f.Width())
			for i := range names {
				names[i] = f.Name + "." + strconv.Itoa(i)
			}
			return names
		}
	}
	return []string{f.Name}
}

// denseWidth returns the number of columns of the dense tensor.
func (r *Resolved) denseWidth() int {
	width := 0
	for i := range r.Dense {
		width += r.Dense[i].Width()
	}
	return width
}
