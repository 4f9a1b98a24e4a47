package papers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/results"
	"github.com/millrace/millrace/internal/goldenfile"
)

// Places of the kept runs and of the page.
const (
	kept = "../../capacity/results/papers"
	docs = "../../docs"
)

// all reads every paper and its kept run.
func all(t *testing.T) (papers []*Paper, runs []*Result) {
	t.Helper()
	for _, name := range Names() {
		p, err := Find(name)
		require.NoError(t, err)
		r, err := readResult(kept, name)
		require.NoError(t, err)
		papers, runs = append(papers, p), append(runs, r)
	}
	return papers, runs
}

// TestThePageIsWhatTheGeneratorWrites compares docs/reproduction.md and its pictures with what the documents and the
// kept runs make.
func TestThePageIsWhatTheGeneratorWrites(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, WritePage(kept, filepath.Join(dir, "reproduction.md")))
	written, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, written, 1+len(Names()), "the page, and a picture for each paper")
	for _, f := range written {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		goldenfile.Text(t, filepath.Join(docs, f.Name()), string(b))
	}
	assert.ErrorContains(t, WritePage(dir, filepath.Join(dir, "page.md")), "there is no run of "+Names()[0])
}

// TestEveryPaperHasItsFiles: a run or a document of a paper that is not run any more would not be seen.
func TestEveryPaperHasItsFiles(t *testing.T) {
	documents, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	runs, err := filepath.Glob(filepath.Join(kept, "*.json"))
	require.NoError(t, err)
	assert.Len(t, documents, len(Names()))
	assert.Len(t, runs, len(Names()))
}

// TestRunsSayWhereTheyWereMade checks what every kept run has beside its values.
func TestRunsSayWhereTheyWereMade(t *testing.T) {
	_, runs := all(t)
	for _, r := range runs {
		assert.True(t, strings.HasPrefix(r.Command, "millrace bench papers"), r.Paper)
		assert.NotEmpty(t, r.Time, r.Paper)
		assert.NotEmpty(t, r.Machine.CPU, r.Paper)
		assert.NotEmpty(t, r.Machine.LoadBefore, r.Paper)
		assert.NotEmpty(t, r.Notes, "%s: --note says what else ran", r.Paper)
		assert.NoError(t, r.check())
	}
}

// small is a document and a run that make a page.
func small() (*Paper, *Result) {
	p := &Paper{Name: "a", Short: "A", Title: "A paper", Scale: "Small.", Exhibits: []Exhibit{{ID: "Figure 1",
		Shows: "a value", How: "It is set.", Rows: []Row{{Quantity: "v", Paper: "2", Place: "I", Ours: "{v|%.1f}x",
			Cause: "A cause."}}}}}
	r := &Result{Paper: "a", Command: "run", Values: Values{"v": {1.25, "times", Measured}}}
	return p, r
}

func TestPage(t *testing.T) {
	p, r := small()
	page, err := pageOf([]*Paper{p}, []*Result{r}, baselines{})
	require.NoError(t, err)
	assert.Contains(t, page, "| 1 | v | 2 (I) | 1.2x | measured |\n")
	assert.Contains(t, page, "- 1: A cause.\n")

	p.Exhibits[0].Rows[0] = Row{Quantity: "v", Ours: "{v}"}
	page, err = pageOf([]*Paper{p}, []*Result{r}, baselines{})
	require.NoError(t, err)
	assert.Contains(t, page, "| 1 | v | no value in the text | 1.25 | measured |\n")

	r.Values["w"] = Value{Value: 1}
	_, err = pageOf([]*Paper{p}, []*Result{r}, baselines{})
	assert.ErrorContains(t, err, "w is on no row")

	delete(r.Values, "v")
	_, err = pageOf([]*Paper{p}, []*Result{r}, baselines{})
	assert.ErrorContains(t, err, "the run has no value v")
}

// TestBaselines checks the table of a kept run: ours without a ratio, what was not timed, and a run without ours.
func TestBaselines(t *testing.T) {
	const document = `{"header": {"time": "today", "cpu": "a core", "commit": "c", "command": "run", "versions": ["A 1"]},
		"tables": [{"model": "rm1", "layout": "plain", "lines": [
			{"name": "millrace", "rows_per_second": {"median": 3e6}}, {"name": "a", "rows_per_second": {"median": 2e6}}]},
			{"model": "rm5", "layout": "plain", "lines": [
			{"name": "millrace", "rows_per_second": {"median": 1000}}, {"name": "b", "rows_per_second": {"median": 400}}]}]}`
	var report results.Report
	require.NoError(t, json.Unmarshal([]byte(document), &report))
	page, err := pageOf(nil, nil, baselines{peers: []*results.Report{&report}})
	require.NoError(t, err)
	assert.Contains(t, page, "This is measured on a core, 1 thread(s), today, commit c, `run` in bench/peers, with A 1.")
	assert.Contains(t, page, "| | RM1, plain | RM5, plain |\n|---|---|---|\n| millrace | 3 M | 1 k |\n"+
		"| a | 2 M (1.5x) | - |\n| b | - | 400 (2.5x) |\n")

	report.Tables[1].Lines = report.Tables[1].Lines[1:]
	_, err = pageOf(nil, nil, baselines{peers: []*results.Report{&report}})
	assert.ErrorContains(t, err, "no rate of millrace for RM5, plain")
}

// TestLoaderBaselines checks the table of the ways to feed a loop.
func TestLoaderBaselines(t *testing.T) {
	r := results.LoaderReport{Header: results.Header{CPU: "a core", Time: "today", Commit: "c", Command: "loaders.py",
		Versions: []string{"A 1"}}, Results: []results.LoaderResult{
		{Model: "rm1", Cores: 1, Side: results.LoaderBase, RowsPerSecond: 3e6},
		{Model: "rm1", Cores: 1, Side: "a", RowsPerSecond: 2e6},
		{Model: "rm5", Cores: 2, Side: results.LoaderBase, RowsPerSecond: 1000}},
		Skipped: map[string]string{"b (rm1)": "it is not here"}}
	page, err := pageOf(nil, nil, baselines{loaders: &r})
	require.NoError(t, err)
	assert.Contains(t, page, "Measured on a core, today, commit c, `loaders.py`, with A 1; load before unknown.")
	assert.Contains(t, page, "| | RM1, 1 core(s) | RM5, 2 core(s) |\n|---|---|---|\n| Millrace | 3 M | 1 k |\n"+
		"| a | 2 M (1.5x) | - |\n\n- Not compared: b (rm1): it is not here.\n")
	r.Results = r.Results[1:]
	_, err = pageOf(nil, nil, baselines{loaders: &r})
	assert.ErrorContains(t, err, "no rate of Millrace for RM1, 1 core(s)")
}

func TestDocumentsThatBreakTheRules(t *testing.T) {
	const head = "name: a\nexhibits:\n  - id: Figure 1\n    shows: a value\n"
	for name, c := range map[string]struct{ rows, why string }{
		"no cause":       {"    rows: [{quantity: v, paper: '1', place: I, ours: '{v}'}]\n", "without the cause"},
		"no reason":      {"    rows: [{quantity: v, paper: '1', place: I}]\n", "reason why there is none"},
		"no place":       {"    rows: [{quantity: v, paper: '1', missing: no board}]\n", "belong together"},
		"no quantity":    {"    rows: [{ours: '{v}'}]\n", "names its quantity"},
		"cause of none":  {"    rows: [{quantity: v, ours: '{v}', cause: none}]\n", "wants two values"},
		"rows and none":  {"    not_reproduced: no board\n    rows: [{quantity: v, ours: '{v}'}]\n", "either rows or"},
		"neither":        {"", "either rows or"},
		"an unknown key": {"    colour: red\n", "colour"},
	} {
		_, err := parse([]byte(head + c.rows))
		require.ErrorIs(t, err, errDocument, name)
		assert.ErrorContains(t, err, c.why, name)
	}
	_, err := parse([]byte(head + "    not_reproduced: no board\n"))
	assert.NoError(t, err)
	_, err = Find("nobody")
	assert.ErrorIs(t, err, ErrOptions)
}

func TestFormat(t *testing.T) {
	for how, want := range map[string]string{"si": "12.3 k", "pct": "1234500.0 %", "": "1.23e+04", "%.0f": "12345"} {
		assert.Equal(t, want, format(12345, how), how)
	}
	for v, want := range map[float64]string{999: "999", 999.6: "1 k", 2.5e6: "2.5 M", 3e9: "3 G", 5e12: "5e+03 G"} {
		assert.Equal(t, want, si(v))
	}
}

func TestLines(t *testing.T) {
	assert.Equal(t, []string{"one two", "three"}, lines("one  two\nthree", 8))
	assert.Equal(t, []string{"longerthan", "x"}, lines("longerthan x", 4))
}

func TestResultsAreReadBack(t *testing.T) {
	_, r := small()
	dir := t.TempDir()
	require.NoError(t, r.Write(dir))
	again, err := readResult(dir, "a")
	require.NoError(t, err)
	assert.Equal(t, r, again)
	require.NoError(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")))
	_, err = readResult(dir, "b")
	assert.ErrorContains(t, err, `a run for paper "a"`)
	r.Values["v"] = Value{Value: 0, Kind: Measured}
	assert.NoError(t, r.check())
	zero := 0.0
	r.Values["v"] = Value{Value: 1 / zero}
	assert.ErrorContains(t, r.check(), "value v is +Inf")
}

func TestProcessor(t *testing.T) {
	const info = "model name\t: AMD EPYC\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: other\n"
	assert.Equal(t, "AMD EPYC, family 26, model 2", processorName(strings.NewReader(info)))
	assert.Equal(t, "unknown", processorName(strings.NewReader("")))
}

func TestPictureRefusesUnknownKeys(t *testing.T) {
	p, r := small()
	p.Picture = &Bars{Title: "<a>", Unit: "x", Bars: []Bar{{Label: "paper", Paper: 2}, {Label: "here", Ours: "v"}}}
	s, err := pictureOf(p, r)
	require.NoError(t, err)
	assert.Contains(t, s, "<title>&lt;a&gt;</title>")
	assert.Contains(t, s, `width="231.2"`)
	p.Picture.Bars[1].Ours = "w"
	_, err = pictureOf(p, r)
	assert.ErrorContains(t, err, "no value w")
}

// TestValuesInJSON checks that values are a list in the order of their keys, and that a key comes once.
func TestValuesInJSON(t *testing.T) {
	b, err := json.Marshal(Values{"b": {2, "rows", Counted}, "a": {1.5, "s", Measured}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"key":"a","value":1.5,"unit":"s","kind":"measured"},`+
		`{"key":"b","value":2,"unit":"rows","kind":"counted"}]`, string(b))
	var v Values
	require.NoError(t, json.Unmarshal(b, &v))
	require.Equal(t, Values{"b": {2, "rows", Counted}, "a": {1.5, "s", Measured}}, v)
	require.ErrorContains(t, json.Unmarshal([]byte(`[{"key":"a"},{"key":"a"}]`), &v), `two values have the key "a"`)
}
