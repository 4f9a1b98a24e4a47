package local

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// setup is one way to run a job. The mini-batches must not depend on the setup.
type setup struct {
	place    string // mem, file, files, or with an accelerator without flash: beside files, beside mem, card
	drives   int
	lba      int
	engine   string // vendor, standard, cpu, reference
	order    dataset.Order
	streams  int
	slm      uint64
	queue    int64
	most     int  // drives at once
	measured bool // T and P are measured, or every drive runs
	copied   bool // the drive lends no views
	coalesce uint64
	seed     uint64 // of the placement
}

// shelf keeps file: drives of one placement from one job to the next: making them waits for the disk.
type shelf map[[3]uint64][]string

func (f shelf) drives(t testing.TB, d *dataSet, s setup, held [][]int, query string) []string {
	key := [3]uint64{s.seed, uint64(s.drives), uint64(s.lba)}
	if f == nil || f[key] == nil {
		uris := d.onFiles(t, held, s.lba, "")
		if f == nil {
			f = shelf{}
		}
		f[key] = uris
	}
	var uris []string
	for _, uri := range f[key] {
		uris = append(uris, uri+query)
	}
	return uris
}

// config makes the drives of a setup; those in files come from the shelf, if there is one.
func (s setup) config(t testing.TB, d *dataSet, shelf shelf) Config {
	c := Config{DriveOptions: host.DriveOptions{Streams: s.streams, SLM: s.slm, Coalesce: s.coalesce,
		Device: sdk.DeviceOptions{NoMap: s.copied}}}
	c.Manager.MeasureTime = 1
	query := ""
	switch s.engine {
	case "standard":
		c.Commands, query = sdk.Standard, "?commands=standard"
	case "cpu":
		c.Engine = host.EngineCPU
		c.Threads = s.streams
	case "reference":
		c.Engine = host.EngineReference
	}
	if strings.HasPrefix(s.place, "beside") || s.place == "card" {
		c.Engine, query = host.EngineAuto, "&commands="+string(sdk.Vendor)
		if s.engine == "standard" {
			query = "&commands=" + string(sdk.Standard)
		}
	}
	held := d.deal(rand.New(rand.NewPCG(s.seed, 5)), s.drives)
	switch s.place {
	case "mem":
		c.Drives = d.memory(t, held, query)
	case "file":
		c.Drives = shelf.drives(t, d, s, held, query)
	case "beside files":
		c.Files, c.Spread, c.Accelerator = source.ParseLocations(d.files(t)...), s.drives, diskless+query
	case "beside mem":
		c.Drives, c.Accelerator = d.memory(t, held, ""), diskless+query
	case "card":
		for i := range s.drives {
			c.Drives = append(c.Drives, fmt.Sprintf("mem:card%d%s", i, strings.TrimPrefix(diskless, "mem:")+query))
		}
		c.Members = d.files(t)
	default:
		c.Files, c.Spread = source.ParseLocations(d.files(t)...), s.drives
	}
	return c
}

// diskless is the URI of a drive without flash. Each opening makes another drive.
const diskless = "mem:?size=0&slm=64MiB"

// options are a job's, shaped by what enters the plan, and the setup's.
func (s setup) options(t testing.TB, plan trainmgr.Options, spec string) trainmgr.Options {
	o := plan
	o.Pipeline = pipelineOf(t, spec)
	o.Order, o.QueueBytes, o.MaxDrives = s.order, s.queue, s.most
	if o.Shuffle != dataset.ShuffleRows {
		o.Window = 0
	}
	if s.measured {
		o.RowsPerSecond = 1e5
	} else {
		o.AllDrives = true
	}
	return o
}

// drawSetup picks a setup; sampled together over a run, pairs of choices are all met.
func drawSetup(rt *rapid.T) setup {
	return setup{
		place:    rapid.SampledFrom([]string{"mem", "file", "files", "beside files", "beside mem", "card"}).Draw(rt, "place"),
		drives:   rapid.IntRange(1, 3).Draw(rt, "drives"),
		lba:      rapid.SampledFrom([]int{512, 4096}).Draw(rt, "lba"),
		engine:   rapid.SampledFrom([]string{"vendor", "standard", "cpu"}).Draw(rt, "engine"),
		order:    rapid.SampledFrom([]dataset.Order{dataset.Fastest, dataset.Deterministic}).Draw(rt, "order"),
		streams:  rapid.IntRange(1, 2).Draw(rt, "streams"),
		slm:      rapid.SampledFrom([]uint64{512 << 10, 8 << 20, 64 << 20}).Draw(rt, "slm"),
		queue:    rapid.SampledFrom([]int64{1, 20_000, 0}).Draw(rt, "queue"),
		most:     rapid.IntRange(0, 2).Draw(rt, "most"),
		measured: rapid.Bool().Draw(rt, "measured"),
		copied:   rapid.Bool().Draw(rt, "copied"),
		coalesce: rapid.SampledFrom([]uint64{0, 1, 1 << 20}).Draw(rt, "coalesce"),
		seed:     rapid.Uint64Range(0, 1).Draw(rt, "seed"),
	}
}

// cutting is what of a plan's options the ways of a job differ in.
type cutting struct {
	boundary dataset.Boundary
	shuffle  dataset.Shuffle
}

// TestOneJobManyWays: the mini-batches of one job are the same by name, wherever the partitions lie, whichever worker
// computes, and whatever the memory, the order and the number of workers are. -rapid.checks 1000 draws more setups.
func TestOneJobManyWays(t *testing.T) {
	d := newDataSet(t, 130, 1000, 300, 201, 100, 49, 155)
	miniBatches := map[dataset.Boundary]int{dataset.BoundaryPartition: 6 + 5 + 2 + 1 + 4, dataset.BoundaryNone: 17}
	for _, name := range []string{"lists", "fixed", "narrow", "sets"} {
		t.Run(name, func(t *testing.T) {
			shelf := shelf{}
			plans := map[cutting]trainmgr.Options{}
			want := map[cutting]work{}
			for boundary, n := range miniBatches {
				for _, shuffle := range []dataset.Shuffle{dataset.ShuffleSplits, dataset.ShuffleRows, dataset.ShuffleNone} {
					cut := cutting{boundary, shuffle}
					plans[cut] = trainmgr.Options{Boundary: boundary, Shuffle: shuffle, Seed: 11, SplitBatches: 3, Window: 2,
						Epochs: 2}
					straight := setup{place: "files", drives: 1, engine: "cpu", order: dataset.Deterministic, streams: 1}
					want[cut] = run(t, straight.config(t, d, nil), straight.options(t, plans[cut], name), nil)
					require.Len(t, want[cut].sums, 2*n)
				}
				// The reference, which is slow, for one epoch of one of them.
				cut := cutting{boundary, dataset.ShuffleRows}
				truth := setup{place: "files", drives: 1, engine: "reference", order: dataset.Deterministic, streams: 1}
				o := truth.options(t, plans[cut], name)
				o.Epochs = 1
				first := run(t, truth.config(t, d, nil), o, nil).sums
				require.Len(t, first, n)
				for mb, sum := range first {
					require.Equal(t, sum, want[cut].sums[mb], "mini-batch %v", mb)
				}
			}
			rapid.Check(t, func(rt *rapid.T) {
				cut := cutting{dataset.Boundary(rapid.Uint8Range(0, 1).Draw(rt, "boundary")),
					dataset.Shuffle(rapid.Uint8Range(0, 2).Draw(rt, "shuffle"))}
				s := drawSetup(rt)
				got := run(rt, s.config(t, d, shelf), s.options(t, plans[cut], name), nil)
				require.Equal(rt, want[cut].sums, got.sums)
				if s.order == dataset.Deterministic {
					require.Equal(rt, want[cut].order, got.order)
				}
				require.EqualValues(rt, 2*d.total(), got.report.Rows)
				if s.most > 0 {
					require.LessOrEqual(rt, got.report.DrivesBusiest, s.most)
				}
			})
		})
	}
}

// rows of a mini-batch, each as text of all that it has.
func rowsOf(mb *tensor.MiniBatch) []string {
	width := len(mb.Schema.Dense)
	rows := make([]string, mb.Rows)
	for r := range rows {
		rows[r] = fmt.Sprint(mb.Label[r], mb.Dense[r*width:(r+1)*width])
	}
	at := 0
	for f := range mb.Schema.Keys {
		for r := range rows {
			n := 1
			if mb.Lengths != nil {
				n = int(mb.Lengths[f*mb.Rows+r])
			}
			if mb.Values32 != nil {
				rows[r] += fmt.Sprint(mb.Values32[at : at+n])
			} else {
				rows[r] += fmt.Sprint(mb.Values64[at : at+n])
			}
			at += n
		}
	}
	return rows
}

// TestDeduplicatedIsTheSameExpanded: in every shuffle a job that deduplicates has the rows of the job that does not,
// each in its mini-batch, and fewer bytes, as its rows repeat.
func TestDeduplicatedIsTheSameExpanded(t *testing.T) {
	d := newDataSet(t, 130, 1000, 300, 201, 49)
	for _, shuffle := range []dataset.Shuffle{dataset.ShuffleSplits, dataset.ShuffleRows, dataset.ShuffleNone} {
		collect := func(document string) (map[uint64]*tensor.MiniBatch, int64) {
			s := setup{place: "files", drives: 2, engine: "cpu", order: dataset.Fastest, streams: 2}
			o := s.options(t, trainmgr.Options{Shuffle: shuffle, Seed: 4, SplitBatches: 3, Window: 2, Epochs: 1}, "sets")
			var err error
			o.Pipeline, err = pipeline.Parse([]byte(document))
			require.NoError(t, err)
			found, bytes := map[uint64]*tensor.MiniBatch{}, int64(0)
			run(t, s.config(t, d, nil), o, func(mb *tensor.MiniBatch) {
				require.NoError(t, mb.Validate())
				bytes += mb.Bytes()
				found[mb.Name.Number] = mb.Clone()
			})
			return found, bytes
		}
		with, fewer := collect(pipelines["sets"])
		without, bytes := collect(strings.ReplaceAll(pipelines["sets"], "    deduplicate: true\n", ""))
		require.Len(t, with, len(without))
		for number, want := range without {
			require.NotNil(t, with[number].Unique)
			got, err := with[number].Expand()
			require.NoError(t, err)
			got.Schema, got.Name = want.Schema, want.Name // the digests differ, and the schemas in their sets
			require.Empty(t, tensor.Diff(want, got))
		}
		require.Less(t, fewer, bytes)
	}
}

// TestMixedRowsStayInTheirWindow: with rows mixed, a window has the rows that it has without, in another order; and so
// in another order again in the next epoch.
func TestMixedRowsStayInTheirWindow(t *testing.T) {
	d := newDataSet(t, 170, 1000, 733, 401, 100)
	const window = 3
	for _, name := range []string{"lists", "fixed"} {
		t.Run(name, func(t *testing.T) {
			collect := func(shuffle dataset.Shuffle) (map[tensor.Name][]string, *dataset.Plan) {
				s := setup{place: "files", drives: 2, engine: "vendor", order: dataset.Fastest, streams: 2}
				o := s.options(t, trainmgr.Options{Shuffle: shuffle, Seed: 4, SplitBatches: 7, Window: window,
					Epochs: 2}, name)
				rows := map[tensor.Name][]string{}
				m, err := Open(t.Context(), s.config(t, d, nil))
				require.NoError(t, err)
				defer func() { require.NoError(t, m.Close()) }()
				runOn(t, m, o, func(mb *tensor.MiniBatch) {
					n := mb.Name
					n.Job = [32]byte{} // the shuffle is part of it
					rows[n] = rowsOf(mb)
				})
				data, err := m.Dataset(t.Context())
				require.NoError(t, err)
				plan, err := dataset.NewPlan(data.Manifest, dataset.Options{Batch: 50, Shuffle: dataset.ShuffleRows,
					Seed: 4, SplitBatches: 7, Window: window})
				require.NoError(t, err)
				return rows, plan
			}
			straight, plan := collect(dataset.ShuffleSplits)
			mixed, _ := collect(dataset.ShuffleRows)
			require.Len(t, mixed, len(straight))
			moved := 0
			for number := uint64(0); number < plan.MiniBatches(); {
				w, err := plan.Window(number)
				require.NoError(t, err)
				for epoch := range uint64(2) {
					var a, b []string
					for i := range uint64(w.Fragments) {
						n := tensor.Name{Epoch: epoch, Number: w.FirstFragment + i}
						require.Len(t, mixed[n], len(straight[n]), "mini-batch %v", n)
						a, b = append(a, straight[n]...), append(b, mixed[n]...)
					}
					if epoch == 0 { // the plan that says where windows end is this epoch's
						require.ElementsMatch(t, a, b)
						if w.Rows > 1 && fmt.Sprint(a) != fmt.Sprint(b) {
							moved++
						}
					}
				}
				number += uint64(w.Fragments)
			}
			assert.Greater(t, moved, 5, "the rows are as they were")
		})
	}
}
