package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"

	"github.com/millrace/millrace/tools/machine"
)

// confidence is the level of the intervals, and the U test's level of significance is 1 minus it; both are those of
// benchstat.
const confidence = 0.95

// comparison is two revisions and what was measured of them.
type comparison struct {
	older, newer *side
	boundPercent float64
	machine      string
	loads        []string
}

// verdict says how a figure of the newer revision compares with the older one's.
type verdict string

const (
	slower            verdict = "SLOWER than the bound"
	slowerWithinBound verdict = "slower, within the bound"
	faster            verdict = "faster"
	different         verdict = "different" // for units that are not speeds
	undecided         verdict = "no difference was found"
)

// row is a figure of both revisions.
type row struct {
	name, unit     string
	older, newer   benchmath.Summary
	changePercent  float64
	p              float64
	verdict        verdict
	countsOfValues string
}

// valuesOf returns the values of each name and unit, and the keys in the order in which they were measured first.
func valuesOf(figures []figure) (values map[figure][]float64, order []figure) {
	values = map[figure][]float64{}
	for _, f := range figures {
		key := figure{name: f.name, unit: f.unit}
		if values[key] == nil {
			order = append(order, key)
		}
		values[key] = append(values[key], f.value)
	}
	return values, order
}

// rows compares the figures that both revisions have. It returns the names of those that only one has.
func (c *comparison) rows() (rows []row, lonely []string, err error) {
	older, order := valuesOf(c.older.figures)
	newer, newerOrder := valuesOf(c.newer.figures)
	for _, key := range newerOrder {
		if older[key] == nil {
			lonely = append(lonely, key.name+" "+key.unit)
		}
	}
	speeds := 0
	for _, key := range order {
		switch {
		case newer[key] == nil:
			lonely = append(lonely, key.name+" "+key.unit)
			continue
		case key.unit == inputBytesPerRow:
			if err := sameInput(key.name, older[key], newer[key]); err != nil {
				return nil, nil, err
			}
			continue
		case directionOf(key.unit) != neutral:
			speeds++
		}
		rows = append(rows, compare(key, older[key], newer[key]))
	}
	if speeds == 0 {
		return nil, nil, fmt.Errorf("the revisions have no speed in common, but only: %s", strings.Join(lonely, ", "))
	}
	decide(rows, c.boundPercent)
	return rows, lonely, nil
}

// inputTolerance is how much the bytes of a row may differ between runs of one revision: a run that ends within the
// data set has read pages whose rows are not all counted.
const inputTolerance = 0.005

// sameInput checks that both revisions read rows of the same size, since rates over different rows compare nothing.
func sameInput(name string, older, newer []float64) error {
	before, after := summarize(older).Center, summarize(newer).Center
	if math.Abs(after-before) > inputTolerance*before {
		return fmt.Errorf("%s: a row has %.4g bytes of input in the older revision and %.4g in the newer one: "+
			"compare with a revision that makes the same rows", name, before, after)
	}
	return nil
}

// sampleOf returns the values as benchmath takes them. It sorts a copy.
func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

// summarize returns the median of the values and its confidence interval.
func summarize(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(sampleOf(values), confidence)
}

// compare compares the values of a figure by the U test.
func compare(key figure, older, newer []float64) row {
	test := benchmath.AssumeNothing.Compare(sampleOf(older), sampleOf(newer))
	r := row{
		name: key.name, unit: key.unit, p: test.P, older: summarize(older), newer: summarize(newer),
		countsOfValues: fmt.Sprintf("%d+%d", len(older), len(newer)),
	}
	r.changePercent = 100 * (r.newer.Center - r.older.Center) / r.older.Center
	if r.older.Center == r.newer.Center {
		r.changePercent = 0 // also of 0 and 0
	}
	return r
}

// decide sets the verdicts. The newer revision is slower in a figure if the U test finds a difference and the median is
// slower than the bound. All speeds together find a difference by chance in one comparison of twenty at most: Holm's
// method (A Simple Sequentially Rejective Multiple Test Procedure, 1979) demands alpha/m of the smallest p of m,
// alpha/(m-1) of the next, and so on until one is not less.
func decide(rows []row, boundPercent float64) {
	alpha := benchmath.DefaultThresholds.CompareAlpha
	var speeds []*row
	for i := range rows {
		r := &rows[i]
		if directionOf(r.unit) == neutral {
			r.verdict = judge(neutral, r.changePercent, r.p < alpha, boundPercent)
			continue
		}
		speeds = append(speeds, r)
	}
	slices.SortStableFunc(speeds, func(a, b *row) int { return cmp.Compare(a.p, b.p) })
	significant := true
	for i, r := range speeds {
		significant = significant && r.p < alpha/float64(len(speeds)-i)
		r.verdict = judge(directionOf(r.unit), r.changePercent, significant, boundPercent)
	}
}

// neededRounds returns how many rounds it takes until the U test can find a difference among the speeds: the
// smallest p of n and n values is 2 of all ways to choose n of 2n.
func neededRounds(speeds int) int {
	ways := 2.0 // of 1 and 1 values
	for n := 1; ; n++ {
		if 2/ways < benchmath.DefaultThresholds.CompareAlpha/float64(speeds) {
			return n
		}
		ways *= 2 * float64(2*n+1) / float64(n+1)
	}
}

// judge returns the verdict on a change of the median, in percent, that is significant or not.
func judge(d direction, changePercent float64, significant bool, boundPercent float64) verdict {
	loss := changePercent
	if d == moreIsFaster {
		// A rate that falls to half takes twice as long, but the loss of a rate is counted in percent of the rate.
		loss = -changePercent
	}
	switch {
	case !significant || changePercent == 0:
		return undecided
	case d == neutral:
		return different
	case loss > boundPercent:
		return slower
	case loss > 0:
		return slowerWithinBound
	}
	return faster
}

// conclude prints the comparison, keeps it with the measurements in the folder, and reports whether a figure of the
// newer revision is slower than the bound.
func (c *comparison) conclude(folder string, to io.Writer) (anySlower bool, err error) {
	rows, lonely, err := c.rows()
	if err != nil {
		return false, err
	}
	var report bytes.Buffer
	c.write(&report, rows, lonely)
	fmt.Fprintf(to, "\n%s", report.Bytes())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, err
	}
	files := map[string]*bytes.Buffer{"report.txt": &report}
	for _, s := range []*side{c.older, c.newer} {
		files[s.role+".txt"] = &bytes.Buffer{}
		writeBenchmarks(files[s.role+".txt"], s.figures)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(to, "The measurements are in %s, as benchstat reads them.\n", folder)
	return slices.ContainsFunc(rows, func(r row) bool { return r.verdict == slower }), nil
}

// write writes the report.
func (c *comparison) write(to io.Writer, rows []row, lonely []string) {
	fmt.Fprintf(to, "older: %s; %s\nnewer: %s; %s\nmachine: %s\n", c.older.description, c.older.goVersion,
		c.newer.description, c.newer.goVersion, c.machine)
	fmt.Fprintf(to, "load before the first round and after each: %s\n\n", strings.Join(c.loads, " "))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tolder\tnewer\tchange\tp\tn\tverdict")
	warnings := map[string]bool{}
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s ±%s\t%s ±%s\t%+.2f %%\t%.3f\t%s\t%s\n", r.name, scaled(r.older.Center, r.unit),
			r.older.PctRangeString(), scaled(r.newer.Center, r.unit), r.newer.PctRangeString(), r.changePercent, r.p,
			r.countsOfValues, r.verdict)
		for _, w := range slices.Concat(r.older.Warnings, r.newer.Warnings) {
			warnings[w.Error()] = true
		}
	}
	table.Flush()
	fmt.Fprintf(to, "\nMedians with their intervals of %.0f %% confidence; p is that of the Mann-Whitney U test, and a "+
		"difference\nis found where it is less than %.2f, corrected for the number of speeds by Holm's method. The bound is "+
		"%g %%.\n", 100*confidence, benchmath.DefaultThresholds.CompareAlpha, c.boundPercent)
	for _, w := range slices.Sorted(maps.Keys(warnings)) {
		fmt.Fprintf(to, "An interval is missing: %s (-rounds).\n", w)
	}
	if len(lonely) > 0 {
		fmt.Fprintf(to, "Only one revision has %s.\n", strings.Join(lonely, ", "))
	}
}

// scaled returns a value with a prefix of its unit: 18.0M rows/s.
func scaled(value float64, unit string) string {
	return benchunit.Scale(value, benchunit.ClassOf(unit)) + " " + unit
}

// describeMachine returns the processor and how many of its cores this process may use.
func describeMachine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s", machine.Processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// load returns the machine's load of the last minute, or a question mark where it has none.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
