package sizing

import (
	"fmt"

	"github.com/millrace/millrace/bench/capacity"
)

// Demand is what some GPUs take of a model, as the table of [DemandOf] has it.
type Demand struct {
	Model string
	GPUs  int
	Kind  string // of GPU
}

// prestoCores are the cores that sustain the T of RM5 on 8 A100s (PreSto, III-B).
const prestoCores = 367

// Demands returns the models and GPUs for which T has a source.
func Demands() []Demand {
	return []Demand{{"dpp-rm1", 8, "V100"}, {"dpp-rm2", 8, "V100"}, {"dpp-rm3", 8, "V100"}, {"rm5", 8, "A100"}}
}

// DemandOf returns T of a model on some GPUs: that of the table's GPUs, times their number. loops is the rate of a core
// that runs TorchArrow's loops. PreSto states T of RM5 in cores alone, so that its rows a second are an assumption.
func DemandOf(model string, gpus int, loops Figure) (Figure, error) {
	for _, d := range Demands() {
		if d.Model != model || gpus < 1 {
			continue
		}
		times := float64(gpus) / float64(d.GPUs)
		if n, dpp := capacity.DPP(model); dpp {
			return Figure{Value: n.T * times, Kind: Published, Source: fmt.Sprintf("DPP, Tables VIII and IX: the workers of a "+
				"training node of %d %ss times their rows a second, for %d GPUs", d.GPUs, d.Kind, gpus)}, nil
		}
		if loops.Value > 0 {
			return Figure{Value: prestoCores * loops.Value * times, Kind: Assumed, Source: fmt.Sprintf("PreSto states T of %s "+
				"on %d %ss only as %d cores; times %.4g rows/s a core (%s), for %d GPUs. The paper's cores are another processor's",
				model, d.GPUs, d.Kind, prestoCores, loops.Value, loops.Source, gpus)}, nil
		}
	}
	return Figure{}, fmt.Errorf("%w: no source states T of %s on %d GPUs: give --t, or --t-gpu with --gpus (the table "+
		"has %s)", ErrJob, model, gpus, describeDemands())
}

// describeDemands lists the table in words.
func describeDemands() (text string) {
	for i, d := range Demands() {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s on %d %ss", d.Model, d.GPUs, d.Kind)
	}
	return text
}
