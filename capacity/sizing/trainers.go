package sizing

import (
	"fmt"

	"github.com/millrace/millrace/capacity"
)

// Demand is what some GPUs take of a model, as the table of [DemandOf] has it.
type Demand struct {
	Model string
	GPUs  int
	Kind  string // Kind is that of the GPU.
}

// Demands returns the models and GPUs for which T has a source.
func Demands() []Demand {
	return []Demand{{"dpp-rm1", 8, "V100"}, {"dpp-rm2", 8, "V100"}, {"dpp-rm3", 8, "V100"}, {"rm5", capacity.PreStoGPUs,
		"A100"}}
}

// DemandOf returns T of a model on some GPUs, in proportion to the T of the table's GPUs. PreSto states T of RM5 only
// as numbers of cores and drives, so this T is the rate of its cores, which rests on an assumed rate of its drives.
func DemandOf(model string, gpus int) (Figure, error) {
	for _, d := range Demands() {
		if d.Model != model || gpus < 1 {
			continue
		}
		times := float64(gpus) / float64(d.GPUs)
		if n, dpp := capacity.DPP(model); dpp {
			source := fmt.Sprintf("DPP, Tables VIII and IX: the workers of a training node of %d %ss times their rows "+
				"a second, for %d GPUs", d.GPUs, d.Kind, gpus)
			return Figure{Value: n.T * times, Kind: Published, Source: source}, nil
		}
		cores, err := capacity.CoresOf(model)
		if err != nil {
			return Figure{}, err
		}
		return Figure{Value: capacity.PreStoCores * cores.PreSto.RowsPerSecond * times, Kind: Assumed,
			Source: fmt.Sprintf("PreSto states T of %s on %d %ss only as %d cores: %s; for %d GPUs", model, d.GPUs,
				d.Kind, capacity.PreStoCores, cores.PreSto.Source, gpus)}, nil
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
