package capacity

import (
	"fmt"

	"github.com/millrace/millrace/capacity/results"
	"github.com/millrace/millrace/fpga/timing"
)

// PreSto compares TorchArrow's cores with its drives (III-B, VI-B): 367 cores, or at most 9 SmartSSDs, feed 8 A100s
// with RM5. It states no rate.
const (
	PreStoCores  = 367
	PreStoDrives = 9
	PreStoGPUs   = 8

	prestoModel   = "rm5"
	prestoIDBytes = 8 // bytes of an id in the files; an assumption, because the paper does not state them
)

// These whole numbers say only that T / (rate of a core) is in (366, 367], and T / (rate of a drive) in (8, 9]. So the
// rate of a drive is that of PreStoFewestCores to PreStoMostCores cores.
const (
	PreStoFewestCores = (PreStoCores - 1.0) / PreStoDrives
	PreStoMostCores   = PreStoCores / (PreStoDrives - 1.0)
)

// PreStoDrive returns the rate of PreSto's SmartSSD for rm1 to rm5: the rows that its flash reads a second at the
// bandwidth that was published for the board ([timing.SmartSSDMeasuredP2P]). For another model the rate is 0, and
// Source has the reason.
func PreStoDrive(model string) CoreRate {
	rate := CoreRate{Name: "PreSto's SmartSSD"}
	w, err := CostOfRow(model, prestoIDBytes)
	if err != nil {
		rate.Source = "no figure: PreSto compares its drive with cores and cards for rm1 to rm5 only"
		return rate
	}
	rate.RowsPerSecond = timing.SmartSSDMeasuredP2P / w.InBytes()
	rate.Source = fmt.Sprintf("%.4g bytes/s over P2P, which a public benchmark of the board measured, / %.4g bytes a "+
		"row of %s with ids of %d bytes; PreSto states no rate", timing.SmartSSDMeasuredP2P, w.InBytes(), model,
		prestoIDBytes)
	return rate
}

// Cores are the rates at which one CPU core preprocesses the rows of a model.
type Cores struct {
	PreSto  CoreRate // PreSto's TorchArrow cores, derived from the paper's numbers of cores and drives
	Loops   CoreRate // TorchArrow's loops, measured by bench/peers
	Kernels CoreRate // our kernels, measured by bench/peers
}

// CoresOf returns the rates of a core for a model. bench/peers measured them on uncompressed files with one core. An
// unknown rate is 0, and its Source has the reason.
func CoresOf(model string) (Cores, error) {
	c := Cores{PreSto: prestoCore(model), Loops: CoreRate{Name: "TorchArrow's loops"},
		Kernels: CoreRate{Name: "our kernels"}}
	run, err := results.Peers()
	if err != nil {
		return c, err
	}
	measured := func(to *CoreRate, program string) {
		rate, ok := run.Rate(model, results.PlainLayout, program)
		if !ok {
			to.Source = fmt.Sprintf("no figure: make bench-peers has not measured %s", model)
			return
		}
		to.RowsPerSecond, to.Source = rate, fmt.Sprintf("%.4g rows/s a core, %s", rate, run.Source())
	}
	measured(&c.Loops, results.TorchArrowLoops)
	measured(&c.Kernels, results.Ours)
	return c, nil
}

// prestoCore returns the rate of one of PreSto's TorchArrow cores. PreSto states cores beside drives for RM5 alone.
func prestoCore(model string) CoreRate {
	c := CoreRate{Name: "PreSto's TorchArrow cores"}
	if model != prestoModel {
		c.Source = fmt.Sprintf("no figure: PreSto states cores beside drives for %s only", prestoModel)
		return c
	}
	drive := PreStoDrive(model)
	c.RowsPerSecond = drive.RowsPerSecond * PreStoDrives / PreStoCores
	c.Source = fmt.Sprintf("%.4g rows/s a core: PreSto's %d cores do what at most %d of its drives do, each of %.4g "+
		"rows/s (%s)", c.RowsPerSecond, PreStoCores, PreStoDrives, drive.RowsPerSecond, drive.Source)
	return c
}
