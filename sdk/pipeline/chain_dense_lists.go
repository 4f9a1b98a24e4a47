package pipeline

import (
	"slices"
	"strconv"

	"github.com/millrace/millrace/fpga/program"
)

// makesDense reports whether operators make dense columns of a list.
func makesDense(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return o.Name == "fixed_length" })
}

// Width returns how many neighbouring columns of the dense tensor a dense feature has.
func (f *Feature) Width() int {
	n, _ := program.DenseColumns(f.Ops)
	return int(n)
}

// columnNames returns the names of the feature's columns in the dense tensor, or of its key.
func (f *Feature) columnNames() []string {
	n, made := program.DenseColumns(f.Ops)
	if !made {
		return []string{f.Name}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = f.Name + "." + strconv.Itoa(i)
	}
	return names
}

// denseWidth returns the number of columns of the dense tensor.
func (r *Resolved) denseWidth() int {
	width := 0
	for i := range r.Dense {
		width += r.Dense[i].Width()
	}
	return width
}
