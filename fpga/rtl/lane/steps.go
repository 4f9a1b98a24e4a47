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
	chains  [][][]step // Each column and sink has a chain.
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
		setupOf, ok := setups[op.Unit()]
		if !ok {
			return nil, fmt.Errorf("the step %v of %v: %w", op.Unit(), kind, errNoUnit)
		}
		setup, err := setupOf(op, kind)
		if err != nil {
			return nil, fmt.Errorf("the step %v of %v: %w", op.Unit(), kind, err)
		}
		chain = append(chain, step{setup: setup, kind: kind, fills: op.Unit() == fillnull.Unit})
		kind = op.Out(kind)
	}
	return chain, nil
}

// setups returns the setup of the unit that computes an operator of values of some kind, by the operator's unit. An
// operator that is not here is not computed in RTL.
var setups = map[program.Unit]func(op program.Op, kind program.Kind) (rtl.Setup, error){
	fillnull.Unit: func(op program.Op, kind program.Kind) (rtl.Setup, error) {
		return rtl.FillNull(fillBits(op.(fillnull.Op), kind)), nil
	},
	clamp.Unit: func(op program.Op, kind program.Kind) (rtl.Setup, error) {
		o := op.(clamp.Op)
		switch kind {
		case program.Int64:
			return rtl.ClampInt64(o.IntLo, o.IntHi), nil
		case program.Float32:
			return rtl.ClampFloat32(float32(o.FloatLo), float32(o.FloatHi)), nil
		}
		return rtl.Setup{}, errNoUnit
	},
	convert.Unit: func(op program.Op, kind program.Kind) (rtl.Setup, error) {
		to := op.(convert.Op).To
		if kind == program.Int64 && to == program.Float32 {
			return rtl.IntToFloat(), nil
		}
		return rtl.Setup{}, lacks("no unit makes %v of %v", to, kind)
	},
	log.Unit: func(op program.Op, _ program.Kind) (rtl.Setup, error) { return rtl.Log(op.(log.Op).Add), nil },
	bucketizeop.Unit: func(op program.Op, kind program.Kind) (rtl.Setup, error) {
		if kind != program.Float32 {
			return rtl.Setup{}, errNoUnit
		}
		return rtl.Bucketize(bucketize.Params(op.(*bucketizeop.Op)))
	},
	sigridhashop.Unit: func(op program.Op, _ program.Kind) (rtl.Setup, error) {
		o := op.(sigridhashop.Op)
		return rtl.SigridHash(sigridhash.Params{Salt: o.Salt, Max: o.Max})
	},
	positivemodulus.Unit: func(op program.Op, _ program.Kind) (rtl.Setup, error) {
		return rtl.PositiveModulus(op.(positivemodulus.Op).M)
	},
	hextoint.Unit: func(program.Op, program.Kind) (rtl.Setup, error) { return rtl.HexToInt(true), nil },
}

// errNoUnit says that no unit in RTL computes an operator.
var errNoUnit = lacks("no unit computes it")

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
