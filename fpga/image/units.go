package image

import (
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
)

// AddUnit adds what an image says about a unit of this build. Decoders read SLM; everything behind them is chained
// on chip.
func (s *Spec) AddUnit(u program.UnitRef) {
	unit, compute, kernel := unitParts(u)
	s.Units, s.Compute, s.Kernels = append(s.Units, unit), append(s.Compute, compute), append(s.Kernels, kernel)
	if u.Unit == program.UnitParquet || u.Unit == program.UnitText {
		s.Connections = append(s.Connections, Connection{Compute: compute.Name, Memory: "slm"})
	}
}

// unitParts returns what an image says about a unit of this build.
func unitParts(u program.UnitRef) (Unit, ComputeUnit, Kernel) {
	number, name, k := uint16(u.Unit), u.Unit.String(), describeKernel(u.Unit)
	return Unit{Number: number, Name: name, Version: u.Version},
		ComputeUnit{Name: name + "_0", Unit: number, Base: 0x1_0000 + uint64(number)*0x1000, Size: 0x1000,
			Control: "chain", IRQ: -1},
		Kernel{Unit: number, Name: name, Args: k.args, In: k.in, Out: k.out}
}

type kernelForm struct {
	args []string
	in   []string
	out  string
}

// describeKernel says how a host feeds a unit.
func describeKernel(u program.Unit) kernelForm {
	switch u {
	case program.UnitParquet, program.UnitText:
		return kernelForm{in: []string{"bytes"}, out: "values"}
	case program.UnitMap:
		return kernelForm{args: []string{"key", "scored"}, in: []string{"values"}, out: "same"}
	}
	d, _ := operator.Find(u)
	return kernelForm{args: d.Args, in: d.In, out: d.Out}
}
