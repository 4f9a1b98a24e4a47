package capacity

import (
	"fmt"

	"github.com/millrace/millrace/bench/results"
)

// MeasuredCPUs returns the two CPU baselines that bench/peers measured for a model (rm1 to rm5), on uncompressed files
// and one core: TorchArrow's loops and our kernels. For a model that was not measured the rates are 0 and the sources
// say so.
func MeasuredCPUs(model string) ([]CoreRate, error) {
	run, err := results.Peers()
	if err != nil {
		return nil, err
	}
	rates := []CoreRate{
		{Name: "TorchArrow's loops, measured here"},
		{Name: "our kernels, measured here"},
	}
	for i, program := range []string{results.TorchArrowLoops, results.Ours} {
		rate, ok := run.Rate(model, results.PlainLayout, program)
		if !ok {
			rates[i].Source = fmt.Sprintf("no figure: make bench-peers has not measured %s", model)
			continue
		}
		rates[i].RowsPerSecond = rate
		rates[i].Source = fmt.Sprintf("%.4g rows/s a core, %s", rate, run.Source())
	}
	return rates, nil
}
