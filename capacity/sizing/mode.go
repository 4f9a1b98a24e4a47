package sizing

import (
	"fmt"

	"github.com/millrace/millrace/capacity"
)

// site is where the rows are preprocessed.
type site int

const (
	inDrives   site = iota // in the drives that hold the data
	onCards                // on cards in the storage nodes
	onNodes                // on the CPUs of the storage nodes
	inPool                 // on the CPUs of nodes without data
	onPooled               // on cards in nodes without data
	onTrainers             // on the trainers' CPUs
)

// Mode is one placement of the preprocessing.
type Mode struct {
	Name  string
	Title string
	site  site
	core  string // the figure of a core's rate, where CPUs preprocess
	// The figures of a pooled card: its ratio to PreSto's drive, its price and its power.
	ratio, usd, watts string
	absent            string // why there are no counts at all
}

// InStorage is the name of the placement in the drives.
const InStorage = "in-storage"

// Modes returns every placement, in the order of reports; of two that cost the same, the first counts as the cheaper.
// The pool of published cores is PreSto's, or for DPP's models that of DPP's workers.
func Modes(model string) []Mode {
	published := Mode{Name: "cpu-pool-presto", Title: "pool of CPU workers, PreSto's published cores", site: inPool,
		core: figurePreStoCore}
	if _, dpp := capacity.DPPWorker(model); dpp {
		published = Mode{Name: "cpu-pool-dpp", Title: "pool of CPU workers, DPP's published workers", site: inPool,
			core: figureDPPCore}
	}
	return []Mode{
		{Name: InStorage, Title: "in storage: the drives compute", site: inDrives},
		{Name: "node-cpu", Title: "storage nodes' CPUs beside plain drives, our kernels", site: onNodes,
			core: figureKernelCore},
		{Name: "node-card", Title: "a card in the storage nodes, fed by plain drives", site: onCards},
		published,
		{Name: "cpu-pool-kernels", Title: "pool of CPU workers, our kernels", site: inPool, core: figureKernelCore},
		{Name: "cpu-pool-loops", Title: "pool of CPU workers, TorchArrow's loops as measured here", site: inPool,
			core: figureLoopsCore},
		{Name: "trainer-kernels", Title: "the trainers' CPUs, our kernels", site: onTrainers, core: figureKernelCore},
		{Name: "trainer-loops", Title: "the trainers' CPUs, TorchArrow's loops as measured here", site: onTrainers,
			core: figureLoopsCore},
		{Name: "presto-u280-pool", Title: "PreSto's pool of U280s, by its published ratio", site: onPooled,
			ratio: figureU280Ratio, usd: figureCardUSD, watts: figureCardWatts},
		{Name: "presto-a100-pool", Title: "PreSto's pool of A100s with NVTabular, by its published ratio",
			site: onPooled, ratio: figureA100Ratio, usd: figureA100USD, watts: figureA100Watts},
		{Name: "presto-smartssd", Title: "PreSto's SmartSSD as published",
			absent: "PreSto states no rate of a drive: 367 cores or at most 9 drives for RM5 bound only the ratio of " +
				"the two"},
		{Name: "presto-u280-node", Title: "PreSto's U280 in the storage node, as published",
			absent: "PreSto says only that it is slightly faster than the SmartSSD; a ratio by watts would rest on " +
				"power that was measured, not on the 225 W and 25 W that are stated"},
	}
}

// memoryBytes is the traffic of a device's memory for a row: what is read and what is sent are each written and read
// once.
func (s *sizer) memoryBytes() float64 { return 2 * (s.value(figureRowIn) + s.value(figureRowOut)) }

// cores returns the cores that sustain T, and their arithmetic; if the rate of a core is unknown, why has the reason.
// The rate does not depend on the drive.
func (s *sizer) cores(figure string) (cores float64, how, why string) {
	f := s.table.figures[figure]
	if f.Value == 0 {
		return 0, "", f.Source
	}
	return s.t / s.value(figure), fmt.Sprintf("T %.4g rows/s / %.4g rows/s a core", s.t, f.Value), ""
}
