package capacity

import (
	"github.com/millrace/millrace/bench/workload"
	"github.com/millrace/millrace/fpga/timing"
)

// DPP's three models (DPP, Tables III, VIII, IX): the bytes that a job stores and the rate that a trainer node
// takes.
//
// T is the workers that a trainer node needs times the rows a second of one worker; bytes a row as stored is the
// storage bandwidth that a worker receives over its rows a second.
var dpp = map[string]struct {
	petabytes  float64 // compressed bytes that a job reads of, Table III
	workers    float64 // a trainer node
	kqps       float64 // of one worker
	storageGBs float64 // received by one worker
}{
	"dpp-rm1": {11.95, 24.16, 11.6, 0.8},
	"dpp-rm2": {25.94, 9.44, 8.0, 1.2},
	"dpp-rm3": {1.95, 55.22, 36.9, 0.8},
}

// DPP returns the need of one trainer node of a DPP model (dpp-rm1, dpp-rm2, dpp-rm3).
func DPP(name string) (Need, bool) {
	m, ok := dpp[name]
	if !ok {
		return Need{}, false
	}
	rows := m.kqps * 1e3
	return Need{Model: name, Bytes: m.petabytes * 1e15, T: m.workers * rows, BytesPerRow: m.storageGBs * 1e9 / rows},
		true
}

// NeedOf returns the need of a model, dpp-rm1 to dpp-rm3 or rm1 to rm5 with ids of idBytes bytes each, and reports
// whether there is such a model. T of rm1 to rm5 is not known: their trainers differ. P of rm1 to rm5 is that of the
// timing model, with the read bandwidth of the drive in prices.
func NeedOf(model string, idBytes int, prices *Prices) (Need, bool) {
	if need, ok := DPP(model); ok {
		return need, true
	}
	m, err := workload.Find(model)
	if err != nil {
		return Need{Model: model}, false
	}
	w := timing.Workload{
		Dense: m.Dense, Sparse: m.Sparse, Mean: m.MeanLength, Fixed: !m.Lists, Generated: m.Generated,
		Borders: m.Borders, IDBytes: idBytes,
	}
	drive := timing.SmartSSD()
	drive.P2P = prices.Drive.Read
	times := drive.Batch(w, workload.Batch)
	bottleneck, _ := times.Bottleneck(false)
	return Need{
		Model:       model,
		BytesPerRow: w.InBytes(),
		P:           times.RowsPerSecond(false),
		PSource:     "model of " + drive.Name + ", bound by " + bottleneck,
		PFromRead:   bottleneck == "move",
	}, true
}
