package papers

import "strings"

// What the model of Piper's boards has beside the clocks of modelPiper.
const (
	piperRandom     = 15     // 3.2: cycles of GenVocab and of ApplyVocab with a large vocabulary in HBM, approximately
	piperHostDecode = 182.29 // Table 4.4.6: seconds of Decode and FillMissing on one CPU core
)

// modelBinary sets the boards' rows a second for binary rows: all columns at once (3.4.1), so that the slowest operator
// takes its cycles for a row.
func modelBinary(r *Result) {
	r.set(Modelled, "rates.local.5k", "rows/s", piperLocal/(piperLoops*piperInterval))
	r.set(Fitted, "rates.network.5k", "rows/s", r.at("operators.clock.5k")/(piperLoops*piperInterval))
	r.set(Fitted, "rates.network.1m", "rows/s", r.at("operators.clock.1m")/(piperLoops*piperRandom))
}

// nanoseconds is the time of a row at a rate.
func nanoseconds(rowsPerSecond float64) float64 { return 1e9 / rowsPerSecond }

// endToEnd sets the boards' end-to-end times beside both loops on this machine's cores, in nanoseconds a row. A
// network-attached board overlaps everything (3.4.2). With a local one the stages follow each other (3.4.1): the
// host's are those of Figure 10, which were measured here, and the kernel is modelled. Stages of binary rows take their
// part of the bytes, and no counting of lines.
func endToEnd(r *Result) {
	decode := r.at("operators.decode.text") / firstRows * 1e9
	binary := piperBinaryRow / r.at("fig10.text_row")
	count, buffer, assign := r.at("fig10.count"), r.at("fig10.buffer"), r.at("fig10.assign")
	kernel := count + buffer + assign + nanoseconds(r.at("rates.local.5k-tsv"))
	// A host that decodes reads the file, decodes it into a buffer of binary rows, and hands that to the kernel.
	host := count + assign + binary*buffer + nanoseconds(r.at("rates.local.5k"))
	boards := map[string]struct {
		here  string // the rates of the loops
		board float64
	}{
		"network.5k-tsv":    {"5k-tsv", nanoseconds(r.at("rates.network.5k-tsv"))},
		"network.1m-tsv":    {"1m-tsv", nanoseconds(r.at("rates.network.1m-tsv"))},
		"local.5k-tsv":      {"5k-tsv", kernel},
		"local_host.5k-tsv": {"5k-tsv", host + decode},
		"local.5k":          {"5k", binary*(buffer+assign) + nanoseconds(r.at("rates.local.5k"))},
		"network.5k":        {"5k", nanoseconds(r.at("rates.network.5k"))},
		"network.1m":        {"1m", nanoseconds(r.at("rates.network.1m"))},
	}
	for name, b := range boards {
		one, two := ModelledAndMeasured, ModelledAndComputed
		if strings.HasPrefix(name, "network.") {
			one, two = FittedAndMeasured, FittedAndComputed
		}
		for threads, kind := range map[string]Kind{".1": one, ".2": two} {
			r.set(kind, "fig9."+name+threads, "times", nanoseconds(r.at("rates."+b.here+threads))/b.board)
		}
	}
	r.set(ModelledAndMeasured, "fig10.host_over_kernel", "times", (host+decode)/kernel)
	r.set(ModelledAndMeasured, "fig10.paper_host_over_kernel", "times", (host+piperHostDecode/firstRows*1e9)/kernel)
}
