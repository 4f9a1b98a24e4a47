package document

import (
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/rtl"
)

// fillFigures gives every figure of the source "rtl" the value and the reference of this build's fpga/rtl. A document
// that states another value or reference is refused: nobody types in what the description of a unit has. So is one
// that requests a clock too fast for the longest path of such a unit, by the path screen of fpga/rtl.
func fillFigures(s *image.Spec) error {
	names := make(map[uint16]string, len(s.Units))
	for _, u := range s.Units {
		names[u.Number] = u.Name
	}
	for i := range s.Parameters.Units {
		p := &s.Parameters.Units[i]
		if p.Interval.Source != image.SourceRTL && p.Latency.Source != image.SourceRTL {
			continue
		}
		u, reference, err := describedUnit(names[p.Unit])
		if err != nil {
			return err
		}
		if err := checkClock(u, s.Parameters.Clock.Value); err != nil {
			return err
		}
		for _, f := range []struct {
			name   string
			figure *image.Figure
			value  int
		}{{"initiation_interval", &p.Interval, u.InitiationInterval}, {"latency_cycles", &p.Latency, u.Latency}} {
			if f.figure.Source != image.SourceRTL {
				continue
			}
			want := image.Figure{Value: uint32(f.value), Source: image.SourceRTL, Reference: reference}
			stated := *f.figure
			if (stated.Value != 0 || stated.Reference != "") && stated != want {
				return fmt.Errorf("unit %s: %s is %d of %q, and this build's fpga/rtl has %d of %q: leave value and reference "+
					"out to take these", u.Name, f.name, stated.Value, stated.Reference, want.Value, want.Reference)
			}
			*f.figure = want
		}
	}
	return nil
}

// describedUnit returns the unit of fpga/rtl that is the hardware of an operator, and what figures of it refer to.
func describedUnit(operator string) (rtl.Unit, string, error) {
	units, err := rtl.Units()
	if err != nil {
		return rtl.Unit{}, "", err
	}
	for _, u := range units {
		if operator == "" || u.Operator != operator {
			continue
		}
		digest, err := u.Digest()
		return u, image.RTLReference(u.Name, digest), err
	}
	return rtl.Unit{}, "", fmt.Errorf("fpga/rtl has no unit %q: give the figure another source", operator)
}

// checkClock returns an error if a clock is faster than the longest path of a unit allows.
func checkClock(u rtl.Unit, clockKHz uint32) error {
	synthesis, err := rtl.ReadSynthesis()
	if err != nil {
		return err
	}
	resources, err := synthesis.Named(u.Name)
	if err != nil {
		return err
	}
	if limit := resources.Path.LimitKHz(); clockKHz > limit {
		return fmt.Errorf("unit %s: clock_khz is %d, and the longest path of fpga/rtl's unit takes %d ps by the path "+
			"screen: request at most %d", u.Name, clockKHz, resources.Path.Picoseconds, limit)
	}
	return nil
}
