package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompare has values of the U test's exact table. Of four and four values p is 2/70 without overlap, and 4/70 with
// one value in between.
func TestCompare(t *testing.T) {
	rate := figure{name: "rm1", unit: rowsPerSecond}
	for _, c := range []struct {
		name         string
		key          figure
		older, newer []float64
		p            float64
		verdict      verdict
	}{
		{"slower without overlap", rate, []float64{100, 101, 102, 103}, []float64{90, 91, 92, 93}, 2.0 / 70, slower},
		{"faster without overlap", rate, []float64{90, 91, 92, 93}, []float64{100, 101, 102, 103}, 2.0 / 70, faster},
		{"slower, within the bound", rate, []float64{100, 100.1, 100.2, 100.3}, []float64{99, 99.1, 99.2, 99.3}, 2.0 / 70,
			slowerWithinBound},
		{"one value in between", rate, []float64{91.5, 101, 102, 103}, []float64{90, 91, 92, 89}, 4.0 / 70, undecided},
		{"much slower, but three values each", rate, []float64{100, 101, 102}, []float64{50, 51, 52}, 2.0 / 20, undecided},
		{"equal", rate, []float64{100, 100, 100, 100}, []float64{100, 100, 100, 100}, 1, undecided},
		{"a time that is longer", figure{"Kernel-2", "sec/op", 0}, []float64{90, 91, 92, 93}, []float64{100, 101, 102, 103},
			2.0 / 70, slower},
		{"bytes that grow", figure{"Kernel-2", "B/op", 0}, []float64{90, 91, 92, 93}, []float64{100, 101, 102, 103}, 2.0 / 70,
			different},
		{"none and none", figure{"Kernel-2", "allocs/op", 0}, []float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}, 1, undecided},
	} {
		rows := []row{compare(c.key, c.older, c.newer)}
		decide(rows, 2)
		r := rows[0]
		if math.Abs(r.p-c.p) > 1e-9 {
			t.Errorf("%s: p is %v, want %v", c.name, r.p, c.p)
		}
		if r.verdict != c.verdict {
			t.Errorf("%s: the verdict is %q, want %q", c.name, r.verdict, c.verdict)
		}
		if math.IsNaN(r.changePercent) {
			t.Errorf("%s: the change is not a number", c.name)
		}
	}
}

// TestMedians: of ten values the interval of at least 95 % goes from the second to the ninth, whose coverage is 97.9 %.
func TestMedians(t *testing.T) {
	s := summarize([]float64{10, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	if s.Center != 5.5 || s.Lo != 2 || s.Hi != 9 || s.Confidence < 0.95 {
		t.Errorf("got the median %v within %v and %v at %v", s.Center, s.Lo, s.Hi, s.Confidence)
	}
}

// TestHolm: of three speeds the smallest p must be less than 0.05/3, the next than 0.05/2, and what follows one that is
// not is not significant. Bytes are no part of the three.
func TestHolm(t *testing.T) {
	verdicts := func(ps ...float64) (verdicts []verdict) {
		rows := []row{{unit: "B/op", p: 0.04, changePercent: -5}}
		for _, p := range ps {
			rows = append(rows, row{unit: rowsPerSecond, p: p, changePercent: -5})
		}
		decide(rows, 2)
		if rows[0].verdict != different {
			t.Errorf("the verdict of bytes is %q", rows[0].verdict)
		}
		for _, r := range rows[1:] {
			verdicts = append(verdicts, r.verdict)
		}
		return verdicts
	}
	for _, c := range []struct {
		ps   []float64
		want []verdict
	}{
		{[]float64{0.049}, []verdict{slower}},
		{[]float64{0.05}, []verdict{undecided}},
		{[]float64{0.049, 0.0166, 0.0249}, []verdict{slower, slower, slower}},
		{[]float64{0.049, 0.0167, 0.0249}, []verdict{undecided, undecided, undecided}},
		{[]float64{0.049, 0.0166, 0.026}, []verdict{undecided, slower, undecided}},
	} {
		if got := verdicts(c.ps...); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q", c.ps, got)
		}
	}
}

// TestNeededRounds: 2/20 of three and three values is not less than 0.05, and 2/70 of four and four is. Among 4 speeds
// 2/70 is not less than 0.05/4, and 2/252 is.
func TestNeededRounds(t *testing.T) {
	for speeds, want := range map[int]int{1: 4, 2: 5, 4: 5, 6: 5, 7: 6, 100: 8} {
		if got := neededRounds(speeds); got != want {
			t.Errorf("%d speeds need %d rounds, want %d", speeds, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		direction   direction
		change      float64
		significant bool
		want        verdict
	}{
		{moreIsFaster, -2, true, slowerWithinBound}, {moreIsFaster, -2.001, true, slower},
		{moreIsFaster, -50, false, undecided}, {moreIsFaster, 2.001, true, faster}, {moreIsFaster, 0, true, undecided},
		{lessIsFaster, 2, true, slowerWithinBound}, {lessIsFaster, 2.001, true, slower}, {lessIsFaster, -3, true, faster},
		{neutral, 300, true, different}, {neutral, 300, false, undecided},
	} {
		if got := judge(c.direction, c.change, c.significant, 2); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// sides returns two sides that measured the figures.
func sides(older, newer []figure) *comparison {
	return &comparison{older: &side{role: "older", figures: older}, newer: &side{role: "newer", figures: newer}}
}

func TestRowsOfOneRevision(t *testing.T) {
	c := sides([]figure{{"rm1", rowsPerSecond, 1}},
		[]figure{{"rm1", rowsPerSecond, 1}, {"rm1", rowsPerProcessorSecond, 1}})
	rows, lonely, err := c.rows()
	if err != nil || len(rows) != 1 || len(lonely) != 1 || lonely[0] != "rm1 rows/processor-s" {
		t.Errorf("got %v and %v (%v)", rows, lonely, err)
	}
	if _, _, err := sides([]figure{{"A", "B/op", 1}}, []figure{{"A", "B/op", 1}}).rows(); err == nil {
		t.Error("a comparison without a speed is accepted")
	}
	if _, _, err := sides([]figure{{"A", "sec/op", 1}}, []figure{{"B", "sec/op", 1}}).rows(); err == nil ||
		!strings.Contains(err.Error(), "B sec/op, A sec/op") {
		t.Errorf("revisions with different benchmarks are refused with %v", err)
	}
}

func TestTheInputIsTheSame(t *testing.T) {
	rate := figure{"rm1", rowsPerSecond, 1}
	for bytes, same := range map[float64]bool{264: true, 265.3: true, 265.4: false, 262.7: true, 262.6: false} {
		older, newer := figure{"rm1", inputBytesPerRow, 264}, figure{"rm1", inputBytesPerRow, bytes}
		_, _, err := sides([]figure{rate, older}, []figure{rate, newer}).rows()
		if (err == nil) != same {
			t.Errorf("rows of 264 and %v bytes: %v", bytes, err)
		}
	}
}

func TestReadModels(t *testing.T) {
	figures, err := readModels(`[{"model": "rm1", "rows_per_second": 10, "cpu_rows_per_second": 20,
		"input_bytes_per_second": 2640, "rows": 7}, {"model": "rm5", "rows_per_second": 3}]`)
	want := []figure{{"rm1", rowsPerSecond, 10}, {"rm1", rowsPerProcessorSecond, 20}, {"rm1", inputBytesPerRow, 264},
		{"rm5", rowsPerSecond, 3}}
	if err != nil || len(figures) != len(want) {
		t.Fatalf("got %v (%v)", figures, err)
	}
	for i := range want {
		if figures[i] != want[i] {
			t.Errorf("figure %d is %v, want %v", i, figures[i], want[i])
		}
	}
	for _, report := range []string{"", "{", "[]", `[{"model": "rm1"}]`, `[{"rows_per_second": 1}]`,
		`[{"model": "rm1", "rows_per_second": 0}]`, `[{"model": "rm1", "rows_per_second": -1}]`} {
		if figures, err := readModels(report); err == nil {
			t.Errorf("%q is read as %v", report, figures)
		}
	}
}

func TestReadBenchmarks(t *testing.T) {
	figures, err := readBenchmarks("goos: linux\nBenchmarkAdd/large-2   100   250 ns/op   4.00 MB/s   16 B/op\nPASS\n")
	want := []figure{{"Add/large-2", "sec/op", 250e-9}, {"Add/large-2", "B/s", 4e6}, {"Add/large-2", "B/op", 16}}
	if err != nil || len(figures) != len(want) {
		t.Fatalf("got %v (%v)", figures, err)
	}
	for i := range want {
		got := figures[i]
		if math.Abs(got.value/want[i].value-1) > 1e-9 || got.name != want[i].name || got.unit != want[i].unit {
			t.Errorf("figure %d is %v, want %v", i, got, want[i])
		}
	}
	for _, report := range []string{"", "PASS\n", "BenchmarkAdd 10 x ns/op\n", "BenchmarkAdd 10 NaN ns/op\n"} {
		if figures, err := readBenchmarks(report); err == nil {
			t.Errorf("%q is read as %v", report, figures)
		}
	}
}

// TestMeasurementsAreBenchmarks: what is kept for benchstat is what was measured.
func TestMeasurementsAreBenchmarks(t *testing.T) {
	var kept bytes.Buffer
	writeBenchmarks(&kept, []figure{{"rm1", rowsPerProcessorSecond, 18.5e6}, {"Add-2", "sec/op", 2.5e-7}})
	figures, err := readBenchmarks(kept.String())
	if err != nil || len(figures) != 2 || figures[0] != (figure{"Rm1", rowsPerProcessorSecond, 18.5e6}) ||
		figures[1] != (figure{"Add-2", "sec/op", 2.5e-7}) {
		t.Errorf("got %v (%v)", figures, err)
	}
}

func TestConcludeKeepsTheReport(t *testing.T) {
	var older, newer []figure
	for i := range 6 {
		older = append(older, figure{"rm1", rowsPerSecond, 100 + float64(i)})
		newer = append(newer, figure{"rm1", rowsPerSecond, 50})
	}
	c, folder := sides(older, newer), filepath.Join(t.TempDir(), "results")
	c.boundPercent = 2
	var out strings.Builder
	slower, err := c.conclude(folder, &out)
	if err != nil || !slower {
		t.Fatalf("slower is %v (%v)", slower, err)
	}
	report, err := os.ReadFile(filepath.Join(folder, "report.txt"))
	if err != nil || !strings.Contains(out.String(), string(report)) || !strings.Contains(string(report), "-51.22 %") {
		t.Errorf("the report is %s (%v)", report, err)
	}
	kept, err := os.ReadFile(filepath.Join(folder, "older.txt"))
	if err != nil || strings.Count(string(kept), "BenchmarkRm1") != 6 {
		t.Errorf("the measurements are %s (%v)", kept, err)
	}
}
