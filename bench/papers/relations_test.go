package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// tolerance is for values that are computed in another order.
const tolerance = 1e-9

// modelled computes the values of a paper that do not depend on the machine.
func modelled(t *testing.T, paper string) *Result {
	t.Helper()
	for _, e := range experiments() {
		if e.name == paper {
			r := newResult(paper, "")
			require.NoError(t, e.model(r))
			require.NoError(t, r.check())
			return r
		}
	}
	require.Fail(t, "no such paper", paper)
	return nil
}

// TestModelledValuesAreCurrent computes what does not depend on the machine again: a kept run of an older model would
// make a page that is wrong.
func TestModelledValuesAreCurrent(t *testing.T) {
	_, results := all(t)
	for _, r := range results {
		again := modelled(t, r.Paper)
		assert.NotEmpty(t, again.Values, r.Paper)
		for key, want := range again.Values {
			got, ok := r.Values[key]
			if assert.True(t, ok, "%s has no %s: run make reproduce", r.Paper, key) {
				assert.InDelta(t, want.Value, got.Value, tolerance*(1+want.Value), "%s: %s", r.Paper, key)
				assert.Equal(t, want.Kind, got.Kind, key)
				assert.Equal(t, want.Unit, got.Unit, key)
			}
		}
	}
}

// TestPreStoHangsTogether checks relations between the modelled values.
func TestPreStoHangsTogether(t *testing.T) {
	r := modelled(t, "presto")
	// A drive equals the paper's cores if a core does what the drive leaves for it.
	assert.InEpsilon(t, float64(prestoCores)/prestoDrives, r.at("drive.rows.rm5")/r.at("cores.paper_core"), tolerance)
	// The drive's rows/s times a core's rate make the drive's again.
	for _, model := range []string{"rm1", rm5} {
		for _, core := range []string{"loops", "kernels"} {
			assert.InEpsilon(t, r.at("drive.rows."+model),
				r.at("cores."+core+"."+model)*r.at("core.rows."+core+"."+model), tolerance)
		}
		assert.Greater(t, r.at("cores.loops."+model), r.at("cores.kernels."+model))
		assert.LessOrEqual(t, r.at("drive.rows_with_output."+model), r.at("drive.rows."+model))
	}
	// A slower link gives fewer rows/s, narrower ids more.
	assert.Less(t, r.at("drive.rows_slow_link.rm5"), r.at("drive.rows.rm5"))
	assert.Greater(t, r.at("drive.rows_small_ids.rm5"), r.at("drive.rows.rm5"))
	// With one mini-batch in flight a drive would equal as many cores as its latency says.
	assert.Greater(t, r.at("cores.batches_in_flight"), 1.0)
	assert.InEpsilon(t, prestoMost*r.at("cores.batches_in_flight"), r.at("cores.from_latency"), tolerance)
	// Nine drives take the watts of Figure 14's text, and the U280 is not slower than the SmartSSD.
	assert.InEpsilon(t, 9*25.0, r.at("fig15.drive_watts"), tolerance)
	assert.Equal(t, float64(prestoDrives), r.at("fig15.drives"))
	assert.GreaterOrEqual(t, r.at("fig16.card_over_drive"), 1.0)
	assert.InEpsilon(t, 9/r.at("fig16.card_over_drive"), r.at("fig16.per_watt"), tolerance, "225 W beside 25 W")
	// Elements share a unit's features.
	for _, unit := range []string{"bucketize", "hash", "log"} {
		assert.InEpsilon(t, 4*r.at("fig17."+unit+".1"), r.at("fig17."+unit+".4"), tolerance, unit)
	}
	// The parts of Table II make its total; a decoder's dictionaries are in UltraRAM, of which the board leaves 116.
	for _, resource := range []string{"lut", "bram", "uram", "dsp"} {
		sum := 0.0
		for part := range prestoUnits() {
			sum += r.at("table2." + part + "." + resource)
		}
		assert.InDelta(t, sum, r.at("table2.total."+resource), tolerance, resource)
		assert.Less(t, sum, 0.8, "%s: the design fits", resource)
	}
	assert.InEpsilon(t, 2*16/116.0, r.at("table2.decode.uram"), tolerance)
	// By the paper's own 367 cores for eight GPUs, 16 cores feed one to 35 %.
	assert.InEpsilon(t, 16/(367/8.0), r.at("fig3.gpu.paper_core"), tolerance)
	assert.Equal(t, 1.0, r.at("fig3.gpu.kernels"), "more than a GPU takes")
	// A share of Extract lies between those of the models with the smallest and the largest.
	assert.Greater(t, r.at("fig12.extract.mean"), r.at("fig12.extract.rm1"))
	assert.Less(t, r.at("fig12.extract.mean"), r.at("fig12.extract.rm2"))
}

// TestPreStosKeptRun checks relations of what was measured and counted.
func TestPreStosKeptRun(t *testing.T) {
	r, err := readResult(kept, "presto")
	require.NoError(t, err)
	for _, model := range []string{"rm1", rm5} {
		assert.InEpsilon(t, r.at("fig13.pool."+model), r.at("fig13.reduction."+model)*r.at("fig13.in_storage."+model),
			tolerance)
		assert.Greater(t, r.at("fig13.reduction."+model), 1.0)
	}
	for _, model := range []string{"rm1", "rm2", "rm3", "rm4", "rm5"} {
		share := r.at("fig5.transform." + model)
		assert.True(t, share > 0 && share < 1, "%s: %v", model, share)
		assert.Greater(t, r.at("fig5.rows."+model), 0.0)
	}
	assert.Less(t, r.at("fig5.rows.rm5"), r.at("fig5.rows.rm1"))
	for _, model := range stepModels {
		dense, sparse, generated := r.at("fig5.dense."+model), r.at("fig5.sparse."+model), r.at("fig5.generated."+model)
		assert.InEpsilon(t, dense+sparse, r.at("fig5.hash_and_log."+model), tolerance)
		assert.Positive(t, generated)
		assert.Less(t, dense+sparse+generated, 1.0, "operators are a part of the whole")
	}
	for _, model := range []string{"rm1", rm5} {
		assert.InEpsilon(t, r.at("fig6.traffic."+model), r.at("fig6.bandwidth."+model)*r.at("fig6.copy"), tolerance)
	}
}

// TestPipersKindsSayWhatWasNotMeasured: clocks, and all values that follow from them, are fitted; values of two threads
// are computed.
func TestPipersKindsSayWhatWasNotMeasured(t *testing.T) {
	r, err := readResult(kept, "piper")
	require.NoError(t, err)
	for key, want := range map[string]Kind{"operators.clock.5k": Fitted, "rates.network.1m-tsv": Fitted,
		"operators.two_cycles.5k": Fitted, "rates.5k-tsv.2": Computed, "rates.5k-tsv.1": Measured,
		"fig9.network.5k.2": FittedAndComputed, "fig9.local.5k.1": ModelledAndMeasured} {
		assert.Equal(t, want, r.Values[key].Kind, key)
	}
}

// TestFeatureKinds checks that the pipelines of kinds of features have these alone, and leave the whole one as it is.
func TestFeatureKinds(t *testing.T) {
	spec, err := pipeline.Named(rm5)
	require.NoError(t, err)
	kinds := featureKinds(spec)
	for kind, groups := range map[string]func(*pipeline.Spec) []pipeline.Group{
		"dense":     func(s *pipeline.Spec) []pipeline.Group { return s.Dense },
		"sparse":    func(s *pipeline.Spec) []pipeline.Group { return s.Sparse },
		"generated": func(s *pipeline.Spec) []pipeline.Group { return s.Generated },
	} {
		for name, part := range kinds {
			if name == kind {
				assert.Equal(t, groups(spec), groups(part), name)
				assert.NotEmpty(t, groups(part), name)
				continue
			}
			assert.Empty(t, groups(part), "%s has %s features", name, kind)
		}
	}
}

// TestEveryExperimentRuns makes every value with the least that runs: those of the kept run, and no others. It takes
// some 20 s, because every experiment runs, over data sets that it generates.
func TestEveryExperimentRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it generates data sets")
	}
	for _, name := range Names() {
		results, err := Run(t.Context(), Options{Papers: []string{name}, Folder: t.TempDir(), Command: "test",
			smoke: true})
		require.NoError(t, err, name)
		require.Len(t, results, 1)
		before, err := readResult(kept, name)
		require.NoError(t, err)
		assert.ElementsMatch(t, slices.Collect(maps.Keys(before.Values)), slices.Collect(maps.Keys(results[0].Values)),
			"%s: run make reproduce", name)
		for key, v := range results[0].Values {
			assert.Equal(t, before.Values[key].Kind, v.Kind, key)
			assert.Equal(t, before.Values[key].Unit, v.Unit, key)
		}
	}
	_, err := Run(t.Context(), Options{Papers: []string{"nobody"}})
	assert.ErrorIs(t, err, ErrOptions)
}

// TestMiniPipeHangsTogether checks the port's model against what the paper prints of the board.
func TestMiniPipeHangsTogether(t *testing.T) {
	r := modelled(t, "minipipe")
	board := map[string]float64{"neg2zero": 0.23, "logarithm": 0.23, "hex2int": 0.92, "modulus": 0.46,
		"vocabgen-8k": 0.92, "vocabmap-8k": 0.46, "vocabgen-512k": 2.15, "vocabmap-512k": 2.96} // Table 4, MiniPipe
	for name, seconds := range board {
		// The board reaches more than two thirds of its port, and no more than rounding of "about six" beyond it.
		model := r.at("table4.model." + name)
		assert.Greater(t, model, seconds*2/3, name)
		assert.Less(t, model, seconds*1.1, name)
	}
	// The operators that are bound by the port alone have one efficiency.
	for _, name := range []string{"logarithm", "hex2int", "modulus", "vocabgen-8k", "vocabmap-8k"} {
		assert.InDelta(t, r.at("table4.model.neg2zero")/0.23, r.at("table4.model."+name)/board[name], 0.01, name)
	}
	assert.InEpsilon(t, 4*r.at("fig11.rate.1"), r.at("fig11.rate.4"), tolerance)
	assert.Greater(t, r.at("fig11.rate.7"), r.at("fig11.rate.4"))
	assert.Greater(t, r.at("fig11.rate.7"), r.at("fig11.host"), "seven pipelines match the link")
	assert.LessOrEqual(t, r.at("fig9.model.d1-1"), r.at("fig9.model.d1-2"))
	assert.LessOrEqual(t, r.at("fig9.model.d1-2"), r.at("fig9.model.d1-3"))
	// The printed seconds of the GPUs, added up by hand, over the model's.
	assert.InEpsilon(t, 0.107/r.at("fig9.model.d1-1"), r.at("fig9.rtx3090.d1-1"), tolerance)
	assert.InEpsilon(t, 64.222/r.at("fig9.model.d1-3"), r.at("fig9.rtx3090.d1-3"), tolerance)
	assert.InEpsilon(t, 9.013/r.at("fig9.model.d1-2"), r.at("fig9.a100.d1-2"), tolerance)
	for _, resource := range []string{"lut", "bram", "dsp"} {
		share := r.at("table2." + resource)
		assert.True(t, share > 0 && share < 0.176, "%s: %v, the paper's with its shell is 17.6 %%", resource, share)
	}
}

// TestMiniPipesKeptRun checks relations of what was measured.
func TestMiniPipesKeptRun(t *testing.T) {
	r, err := readResult(kept, "minipipe")
	require.NoError(t, err)
	for _, set := range []string{"d1", "d2"} {
		assert.Greater(t, r.at("fig9.seconds."+set+"-3"), r.at("fig9.seconds."+set+"-1"), "a vocabulary costs time")
	}
	for _, o := range portOperators() {
		assert.InEpsilon(t, r.at("table4."+o.name), float64(o.columns)*r.at("fig7."+o.name), tolerance)
	}
	assert.LessOrEqual(t, r.at("switch.p50"), r.at("switch.p99"))
	assert.LessOrEqual(t, r.at("beside.least"), r.at("beside.most"))
	assert.Equal(t, 1.0, r.at("regions.speedup.1"))
	for _, n := range []string{"2", "4", "7"} {
		assert.InEpsilon(t, r.at("regions.rows."+n), r.at("regions.speedup."+n)*r.at("regions.rows.1"), tolerance)
	}
}

// TestPiperHangsTogether checks the model of the boards against what the paper prints of them.
func TestPiperHangsTogether(t *testing.T) {
	const rounding = 0.005 // of three digits
	r := modelled(t, "piper")
	for key, printed := range map[string]float64{ // tables of 4.4.6 and of 4.4.3
		"operators.one_cycle.5k": 7.33, "operators.two_cycles.5k": 14.67, "operators.one_cycle.1m": 13.58,
		"operators.two_cycles.1m": 27.16, "rates.local.5k-tsv": 1.87e6, "rates.network.5k-tsv": 1.56e6,
		"rates.network.1m-tsv": 8.45e5,
	} {
		assert.InEpsilon(t, printed, r.at(key), rounding, key)
	}
	assert.InEpsilon(t, 2*r.at("operators.one_cycle.5k"), r.at("operators.two_cycles.5k"), tolerance)
	assert.InEpsilon(t, piperLarge/piperSmall, r.at("operators.clock.5k")/r.at("operators.clock.1m"), tolerance)
	// Binary rows: about 15 cycles give about the printed rate of 1M; two cycles are a bound for 5K.
	assert.InEpsilon(t, 4.99e6, r.at("rates.network.1m"), 0.15)
	assert.Greater(t, r.at("rates.network.5k"), 2.36e7)
	assert.Greater(t, r.at("rates.local.5k"), 1.77e7)
}

// TestPipersKeptRun checks relations of what was measured and counted.
func TestPipersKeptRun(t *testing.T) {
	r, err := readResult(kept, "piper")
	require.NoError(t, err)
	assert.Zero(t, r.at("decoder.wrong"))
	for _, name := range []string{"5k", "5k-tsv"} {
		large := "1m" + name[2:]
		assert.Greater(t, r.at("rates."+name+".1"), r.at("rates."+large+".1"), "a larger vocabulary costs time")
	}
	share := r.at("fig10.buffer_share")
	assert.True(t, share > 0 && share < 1, share)
	for _, threads := range []string{".1", ".2"} {
		for name, rate := range map[string]string{"network.5k-tsv": "5k-tsv", "network.1m-tsv": "1m-tsv",
			"network.5k": "5k", "network.1m": "1m"} {
			assert.InEpsilon(t, r.at("rates."+name)/r.at("rates."+rate+threads), r.at("fig9."+name+threads), tolerance,
				name)
		}
		assert.Less(t, r.at("fig9.local.5k-tsv"+threads)*r.at("rates.5k-tsv"+threads), r.at("rates.local.5k-tsv"),
			"the host's stages are on top of the kernel's time")
		assert.InEpsilon(t, r.at("fig9.local.5k-tsv"+threads)/r.at("fig9.local_host.5k-tsv"+threads),
			r.at("fig10.host_over_kernel"), tolerance)
	}
	assert.Greater(t, r.at("fig10.paper_host_over_kernel"), r.at("fig10.host_over_kernel"))
}

// TestDPPHangsTogether checks the workers of Table IX against what it prints.
func TestDPPHangsTogether(t *testing.T) {
	r := modelled(t, "dpp")
	for model, printed := range map[string]float64{"rm1": 24.16, "rm2": 9.44, "rm3": 55.22} {
		assert.InEpsilon(t, printed, r.at("table9.exact."+model), 0.02, "the table rounds to two digits")
		assert.Equal(t, math.Ceil(r.at("table9.exact."+model)), r.at("table9.workers."+model))
	}
	assert.Equal(t, float64(len(dppTransforms)), r.at("table11.transforms"))
	assert.Len(t, dppTransforms, 16)
	// The inferred share makes the printed gains agree.
	share := r.at("power.share")
	assert.InEpsilon(t, dppPowerGain, 1/(share/dppWorkerGain+(1-share)/dppStorageGain), tolerance)
	assert.True(t, share > 0 && share < 1, share)
}

// TestMixHasTheScaledCounts checks the pipelines of VI-D's classes: how many features each makes.
func TestMixHasTheScaledCounts(t *testing.T) {
	columns := []columntypes.Column{{Name: "label", Kind: program.Int64, Bits: 32}}
	for i := range mixDense {
		columns = append(columns, columntypes.Column{Name: fmt.Sprint("int_", i), Kind: program.Float32,
			Nullable: true})
	}
	for i := range mixSparse {
		columns = append(columns,
			columntypes.Column{Name: fmt.Sprint("cat_", i), Kind: program.Int64, List: true, Nullable: true})
	}
	const third, classes = mixDense / 3, 8 // Onehot takes what two thirds leave, and makes a column of each class
	for class, want := range map[string][2]int{"dense": {2*third + classes*(mixDense-2*third), 0},
		"sparse": {0, mixSparse}, "generated": {0, mixDerived}} {
		spec, err := pipeline.Parse([]byte(mixPipelines()[class]))
		require.NoError(t, err, class)
		resolved, err := resolve.Pipeline(spec, columns)
		require.NoError(t, err, class)
		_, schema, err := lowering.Lower(resolved)
		require.NoError(t, err, class)
		assert.Equal(t, want, [2]int{len(schema.Dense), len(schema.Keys)}, class)
	}
	assert.Len(t, mixPipelines(), 3)
}

// TestDPPsKeptRun checks the story of section VII: selective reading hurts disks, joined reads and an order of features
// mend that, and no step reads what the one before did not.
func TestDPPsKeptRun(t *testing.T) {
	r, err := readResult(kept, "dpp")
	require.NoError(t, err)
	assert.Less(t, r.at("storage.over_maps.flattened"), 1.0)
	steps := []string{"flattened", "coalesced", "ordered", "large_stripes"}
	for i := 1; i < len(steps); i++ {
		assert.Greater(t, r.at("storage.over_maps."+steps[i]), r.at("storage.over_maps."+steps[i-1]), steps[i])
		assert.Less(t, r.at("storage.reads."+steps[i]), r.at("storage.reads."+steps[i-1]), steps[i])
	}
	assert.Zero(t, r.at("storage.excess.flattened"))
	assert.Greater(t, r.at("storage.excess.maps"), r.at("storage.excess.coalesced"))
	assert.Greater(t, r.at("worker.over_maps"), 1.0)
	assert.Less(t, r.at("worker.bytes_in.flattened"), r.at("worker.bytes_in.maps"))
	assert.Less(t, r.at("table6.p5"), r.at("table6.p95"))
	assert.InDelta(t, 1, r.at("mix.share.dense")+r.at("mix.share.sparse")+r.at("mix.share.generated"), tolerance)
	least := min(r.at("worker.over_maps"), r.at("storage.over_maps.large_stripes"))
	assert.GreaterOrEqual(t, r.at("power.gain"), least, "a weighted gain lies between both")
	assert.LessOrEqual(t, r.at("power.gain"), max(r.at("worker.over_maps"), r.at("storage.over_maps.large_stripes")))
}

func TestCoalesce(t *testing.T) {
	groups := [][]byteRange{{{0, 10}, {10, 20}, {90, 100}}, {{100, 110}}}
	for span, want := range map[int64][][]byteRange{
		10:  {{{0, 10}, {10, 20}, {90, 100}}, {{100, 110}}},
		19:  {{{0, 10}, {10, 20}, {90, 100}}, {{100, 110}}},
		20:  {{{0, 20}, {90, 100}}, {{100, 110}}},
		99:  {{{0, 20}, {90, 100}}, {{100, 110}}},
		100: {{{0, 100}}, {{100, 110}}},
	} {
		assert.Equal(t, want, coalesce(groups, span), span)
	}
	assert.Equal(t, 40.0, total(groups))
	d := distributionOf(groups)
	assert.Equal(t, distribution{10, 0, 10, 10, 10, 10, 10}, d)
}

// TestFastFlowHangsTogether checks the threshold of section 4.1, and relations of the simulated systems.
func TestFastFlowHangsTogether(t *testing.T) {
	model := modelled(t, "fastflow")
	assert.Zero(t, model.at("when.none"))
	assert.Zero(t, model.at("when.below"))
	assert.Equal(t, 1.0, model.at("when.above"))
	// As many remote vCPUs as local ones make half of the rows, three times as many three quarters.
	assert.InEpsilon(t, 0.5, model.at("ratio.speaker.7"), tolerance)
	assert.InEpsilon(t, 0.75, model.at("ratio.speaker.21"), tolerance)
	assert.Less(t, model.at("ratio.transformer.slow"), 0.5, "the link gives less than the local vCPUs")

	r, err := readResult(kept, "fastflow")
	require.NoError(t, err)
	for _, name := range []string{"paper", "code", "extended"} {
		assert.LessOrEqual(t, r.at(name+".least"), r.at(name+".median"), name)
		assert.LessOrEqual(t, r.at(name+".median"), r.at(name+".most"), name)
		offloading := r.at(name+".p1") + r.at(name+".p2") + r.at(name+".p3")
		assert.InDelta(t, offloading, r.at(name+".offloads")*r.at("cases"), tolerance*offloading, name)
	}
	for _, over := range []string{"over_remote", "over_both"} {
		assert.LessOrEqual(t, r.at(over+".least"), r.at(over+".median"), over)
		assert.LessOrEqual(t, r.at(over+".median"), r.at(over+".most"), over)
	}
	assert.GreaterOrEqual(t, r.at("over_remote.median"), r.at("over_both.median"),
		"both sides make at least what one makes")
	assert.Zero(t, r.at("paper.needless"), "section 4.1 excludes it")
	assert.Less(t, r.at("extended.distance"), r.at("paper.distance"))
	assert.Greater(t, r.at("ranks.gain.1"), r.at("ranks.gain.4"), "ranks that wait for each other gain less")
}
