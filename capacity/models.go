package capacity

import (
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host/workload"
)

// DPP's three models (DPP, Tables III, VIII, IX): the bytes that a job stores and the rate that a trainer node
// takes.
//
// T is the workers that a trainer node needs times the rows a second of one worker; bytes a row as stored is the
// storage bandwidth that a worker receives over its rows a second; bytes a row of tensors is what it sends over them.
var dpp = map[string]struct {
	petabytes  float64 // compressed bytes that a job reads of, Table III
	workers    float64 // a trainer node
	kqps       float64 // A worker has this throughput.
	storageGBs float64 // received by one worker
	tensorGBs  float64 // sent by one worker
}{
	"dpp-rm1": {11.95, 24.16, 11.6, 0.8, 0.68},
	"dpp-rm2": {25.94, 9.44, 8.0, 1.2, 0.50},
	"dpp-rm3": {1.95, 55.22, 36.9, 0.8, 0.22},
}

// Worker is a worker of DPP as the paper reports it: the rows a second of one core of 18 (Table X), and the bytes of a
// row's tensors.
type Worker struct {
	CoreRowsPerSecond float64
	TensorBytes       float64 // a row
}

// dppWorkerCores are the cores of a worker of DPP, C-v1 in Table X.
const dppWorkerCores = 18

// DPPWorker returns the worker of a DPP model (dpp-rm1, dpp-rm2, dpp-rm3), and reports whether there is such a model.
func DPPWorker(name string) (Worker, bool) {
	m, ok := dpp[name]
	if !ok {
		return Worker{}, false
	}
	rows := m.kqps * 1e3
	return Worker{CoreRowsPerSecond: rows / dppWorkerCores, TensorBytes: m.tensorGBs * 1e9 / rows}, true
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
// timing model, without the moves from flash, whose bandwidth is a constraint of its own.
func NeedOf(model string, idBytes int) (Need, bool) {
	if need, ok := DPP(model); ok {
		return need, true
	}
	w, err := CostOfRow(model, idBytes)
	if err != nil {
		return Need{Model: model}, false
	}
	return modelled(model, BatchOf(w), timing.SmartSSD()), true
}

// NeedUnderImage returns the need of rm1 to rm5 as [NeedOf] does, with P of the SmartSSD's model under an image. It is
// an error if the image states no parameters, or none of a unit that the model's rows need.
func NeedUnderImage(model string, idBytes int, m *image.Image) (Need, error) {
	w, err := CostOfRow(model, idBytes)
	if err != nil {
		return Need{}, fmt.Errorf("%w: the model of drives knows the rows of rm1 to rm5 only, and those of --pipeline: %w",
			ErrNeed, err)
	}
	return NeedOfBatch(model, BatchOf(w), m)
}

// Batch is the work of a mini-batch.
type Batch struct {
	Work timing.Work
	Rows int
}

// BatchOf returns the mini-batch of PreSto's size of a workload.
func BatchOf(w timing.Workload) Batch { return Batch{w.Work(workload.Batch), workload.Batch} }

// NeedOfBatch returns the need of rows of which the work of a mini-batch is known. P is that of the SmartSSD's model,
// under an image if m is not nil. It is an error if the image states no parameters, or none of a unit that the work
// needs.
func NeedOfBatch(model string, b Batch, m *image.Image) (Need, error) {
	if m == nil {
		return modelled(model, b, timing.SmartSSD()), nil
	}
	drive, err := DriveOfImage(b, m)
	if err != nil {
		return Need{}, err
	}
	need := modelled(model, b, drive)
	need.Assumes = append(need.Assumes, "no tool and no board achieved the image's figures: each is what its source says")
	for _, f := range m.Spec.Parameters.Figures(m.Spec.Units) {
		need.Assumes = append(need.Assumes, "image: "+f.Name+" "+f.Figure.String())
	}
	return need, nil
}

// CostOfRow returns what a row of rm1 to rm5 costs, with ids of idBytes bytes each in the file.
func CostOfRow(model string, idBytes int) (timing.Workload, error) {
	m, err := workload.Find(model)
	if err != nil {
		return timing.Workload{}, err
	}
	return timing.Workload{
		Dense: m.Dense, Sparse: m.Sparse, Mean: m.MeanLength, Fixed: !m.Lists, Generated: m.Generated,
		Borders: m.Borders, IDBytes: idBytes,
	}, nil
}

// DriveOfImage returns the SmartSSD's model under an image. It is an error if the image states no parameters, or none
// of a unit that the work needs.
func DriveOfImage(b Batch, m *image.Image) (timing.Device, error) {
	p := m.Spec.Parameters
	if p == nil {
		return timing.Device{}, fmt.Errorf("%w: image %s states no parameters, from which P would follow: build it with some",
			ErrNeed, m.ID.Short())
	}
	drive := timing.OfImage(timing.SmartSSD(), p)
	drive.Name += " under image " + m.ID.Short()
	if err := drive.CheckWork(b.Work); err != nil {
		return timing.Device{}, fmt.Errorf("%w: image %s: %w", ErrNeed, m.ID.Short(), err)
	}
	return drive, nil
}

// modelled returns the need of a model whose P is that of a modelled drive. Where the stages of the drive overlap, P is
// that of its units and its memory. Without overlap the moves from flash take their part of each mini-batch's time, at
// the bandwidth that was measured of the board.
func modelled(model string, b Batch, drive timing.Device) Need {
	drive.P2P = timing.SmartSSDMeasuredP2P
	times := drive.Times(b.Work)
	times.Rows = b.Rows
	if drive.Overlap {
		times.Move = 0
	}
	bottleneck, _ := times.Bottleneck(false)
	return Need{
		Model:       model,
		BytesPerRow: b.Work.FlashBytes / float64(b.Rows),
		P:           times.RowsPerSecond(false),
		PSource:     "model of " + drive.Name + ", bound by " + bottleneck,
	}
}
