package lane

import (
	"errors"
	"fmt"
	"math"

	bucketizeop "github.com/millrace/millrace/fpga/operator/bucketize"
	bucketize "github.com/millrace/millrace/fpga/operator/bucketize/kernel"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	sigridhashop "github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// step is one operator of a chain: the unit that computes it, with its registers, and the kind of what it takes.
type step struct {
	setup rtl.Setup
	kind  program.Kind
	fills bool // fill_null, which takes values that are absent
}

// plan is a program with the units that compute its chains.
type plan struct {
	program *program.Program
	chains  [][][]step // of each column and sink
}

// Check returns an error that wraps rtl.ErrNotInRTL and names the step, if a program has one that no unit computes.
func Check(p *program.Program) error {
	_, err := planOf(p)
	return err
}

// lacks returns an error that wraps rtl.ErrNotInRTL.
func lacks(format string, args ...any) error {
	return fmt.Errorf("%w: %s; use another engine", rtl.ErrNotInRTL, fmt.Sprintf(format, args...))
}

// planOf finds the unit of every step of a program.
func planOf(p *program.Program) (*plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch out := p.Output; {
	case len(p.Graphs) > 0:
		return nil, graphLacks(&p.Graphs[0])
	case out.Weights:
		return nil, lacks("no unit makes weights of ids")
	case out.DenseType != program.DenseFloat32:
		return nil, lacks("the unit row_packer packs float32, and the dense tensor is bfloat16")
	}
	planned := &plan{program: p}
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.Part != program.NoPart {
			return nil, lacks("column %q: no unit takes keys out of maps", c.Name)
		}
		chains := make([][]step, len(c.Sinks))
		for j := range c.Sinks {
			var err error
			if chains[j], err = chainOf(c, c.Sinks[j].Ops); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Name, err)
			}
		}
		planned.chains = append(planned.chains, chains)
	}
	return planned, nil
}

// graphLacks names the first step of a graph: no unit takes values of several columns.
func graphLacks(g *program.Graph) error {
	for _, s := range g.Steps {
		if s.Combine != nil {
			return lacks("the step %v: no unit takes values of several columns", s.Combine.Unit())
		}
	}
	return lacks("no unit takes values of several columns")
}

// chainOf finds the units of a sink's steps.
func chainOf(c *program.Column, ops []program.Op) ([]step, error) {
	kind := c.Kind
	var chain []step
	for _, op := range ops {
		setup, err := setupOf(op, kind)
		if err != nil {
			return nil, fmt.Errorf("the step %v of %v: %w", op.Unit(), kind, err)
		}
		_, fills := op.(fillnull.Op)
		chain = append(chain, step{setup: setup, kind: kind, fills: fills})
		kind = op.Out(kind)
	}
	return chain, nil
}

// setupOf returns the setup of the unit that computes an operator of values of some kind.
func setupOf(op program.Op, kind program.Kind) (rtl.Setup, error) {
	switch o := op.(type) {
	case fillnull.Op:
		return rtl.FillNull(fillBits(o, kind)), nil
	case clamp.Op:
		switch kind {
		case program.Int64:
			return rtl.ClampInt64(o.IntLo, o.IntHi), nil
		case program.Float32:
			return rtl.ClampFloat32(float32(o.FloatLo), float32(o.FloatHi)), nil
		}
	case convert.Op:
		if kind == program.Int64 && o.To == program.Float32 {
			return rtl.IntToFloat(), nil
		}
		return rtl.Setup{}, lacks("no unit makes %v of %v", o.To, kind)
	case log.Op:
		return rtl.Log(o.Add), nil
	case *bucketizeop.Op:
		if kind == program.Float32 {
			return rtl.Bucketize(bucketize.Params(o))
		}
	case sigridhashop.Op:
		return rtl.SigridHash(sigridhash.Params{Salt: o.Salt, Max: o.Max})
	case positivemodulus.Op:
		return rtl.PositiveModulus(o.M)
	case hextoint.Op:
		return rtl.HexToInt(true), nil
	}
	return rtl.Setup{}, lacks("there is no such unit")
}

// fillBits returns the bits of fill_null's constant in a kind.
func fillBits(o fillnull.Op, kind program.Kind) uint64 {
	switch kind {
	case program.Float32:
		return uint64(math.Float32bits(float32(o.Float)))
	case program.Float64:
		return math.Float64bits(o.Float)
	}
	return uint64(o.Int)
}

// ErrData says that the partition holds a value that the pipeline does not allow: a token that is not a number, a null
// that reaches dense or label, an id that does not fit.
var ErrData = errors.New("bad data")
