package exploration

import (
	"fmt"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/timing"
)

// decodedBits are the bits of a value that the decoder of runs yields.
const decodedBits = 32

// element is one element of a unit: its speed, and the area of the units of fpga/rtl that it is made of.
type element struct {
	timing timing.Elements
	area   Area
}

// elements are those of the units that the model knows.
type elements struct{ decode, bucketize, hash, log element }

// describedElements returns the elements that the descriptions and the synthesis of fpga/rtl make. Nulls are filled and
// dense values are clamped before the operators, as the pipelines of rm1 to rm5 do; with lists, the decoder finds their
// lengths.
func describedElements(lists bool) (e elements, tool string, err error) {
	synthesis, err := rtl.ReadSynthesis()
	if err != nil {
		return e, "", err
	}
	decoder := []string{"hybrid_decoder"}
	if lists {
		decoder = append(decoder, "list_lengths")
	}
	for _, x := range []struct {
		into  *element
		units []string // the first one is the element's
	}{
		{&e.decode, decoder}, {&e.bucketize, []string{"bucketize", "fill_null"}},
		{&e.hash, []string{"sigrid_hash", "fill_null"}}, {&e.log, []string{"log", "fill_null", "clamp"}},
	} {
		if *x.into, err = describedElement(synthesis, x.units); err != nil {
			return e, "", err
		}
	}
	return e, synthesis.Tool, nil
}

// describedElement returns the element of units that are chained. Its interval is the longest of them, its latency
// their sum.
func describedElement(synthesis rtl.Synthesis, units []string) (element, error) {
	e := element{timing: timing.Elements{Count: 1, Lanes: 1}}
	for _, name := range units {
		u, err := rtl.Named(name)
		if err != nil {
			return e, err
		}
		r, err := synthesis.Named(name)
		if err != nil {
			return e, err
		}
		e.timing.Interval = max(e.timing.Interval, u.InitiationInterval)
		e.timing.Latency += u.Latency
		e.area = e.area.plus(1, Area{r.LUT + r.SRL + r.LUTRAM, r.BRAM18, r.URAM, r.DSP})
		if name != "hybrid_decoder" {
			continue
		}
		if e.timing.Lanes, err = lanesOf(u); err != nil {
			return e, err
		}
	}
	return e, nil
}

// lanesOf returns how many values a transfer of the decoder of runs holds.
func lanesOf(u rtl.Unit) (int, error) {
	for _, f := range u.Output {
		if f.Name == "values" && f.Bits >= decodedBits {
			return f.Bits / decodedBits, nil
		}
	}
	return 0, fmt.Errorf("exploration: unit %s has no output of values", u.Name)
}
