package results

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// speedReport is one run of bench/peers/python/speed.py: rows per CPU second of ways to read a data set in Python.
type speedReport struct {
	Header struct {
		Header
		Rounds    int    `json:"rounds"` // turns of each side
		Cores     int    `json:"cores"`
		LoadAfter string `json:"load_after"`
	} `json:"header"`
	Tables []speedTable `json:"tables"`
}

// speedTable is one data set.
type speedTable struct {
	Title string `json:"title"`
	Lines []struct {
		Side             string `json:"side"`
		Work             string `json:"work"` // "all", "own hash" or "columns"
		Output           string `json:"output"`
		RowsPerCPUSecond struct {
			Median float64 `json:"median"`
		} `json:"rows_per_cpu_second"`
	} `json:"lines"` // Millrace is the first
	// Modelled is nil where the model of a drive has no stage for the data set's work.
	Modelled *struct {
		RowsPerSecond float64 `json:"rows_per_second"`
		Command       string  `json:"command"`
	} `json:"modelled"`
	// Resumes says of the sides that have a state whether a later process made exactly the mini-batches that a lost one
	// would have made, in the order of the files and shuffled. Only one of the tables has it.
	Resumes map[string]struct{ Plain, Shuffled bool } `json:"resumes"`
}

// markdown is what README says of speed.
func (r *speedReport) markdown() string {
	h := r.Header
	b := filled(fmt.Sprintf("Rows per CPU second of all processes, for a user in Python, epoch after epoch. Each way "+
		"hands over label, dense features and hashed ids, compared with Millrace's; *columns only* hands over the files' "+
		"columns as they are. Medians of %d turns in alternation on %s, %d cores, %s, commit %s, `%s`; load %s before and "+
		"%s after.", h.Rounds, h.CPU, h.Cores, h.Time, h.Commit, h.Command, h.Load, h.LoadAfter)) + "\n|"
	for _, t := range r.Tables {
		b += " | " + t.Title
	}
	b += " | resumes exactly |\n|---|" + strings.Repeat("---|", len(r.Tables)+1) + "\n"
	for i, l := range r.Tables[0].Lines {
		b += "| " + l.Side + map[string]string{"own hash": ", its own hash", "columns": ": columns only"}[l.Work]
		for _, t := range r.Tables {
			b += " | " + rate(t.Lines[i].RowsPerCPUSecond.Median)
		}
		b += strings.TrimRight(" | "+r.resumes(l.Side), " ") + " |\n"
	}
	for _, t := range r.Tables {
		if t.Modelled != nil {
			b += "\n" + filled(fmt.Sprintf("Of %s, a computational storage drive is *modelled* to make %s rows/s, and not "+
				"measured: `%s`. The model has no stage for Snappy or for text.", t.Title, rate(t.Modelled.RowsPerSecond),
				t.Modelled.Command))
		}
	}
	return b
}

// filled breaks a text into lines of at most 120 columns.
func filled(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > 120:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}

// engineAlone is the side of the engine without a loop around it.
const engineAlone = "Millrace's engine alone"

// resumes says in a few words whether a side goes on exactly from a state that it kept.
func (r *speedReport) resumes(side string) string {
	if side == engineAlone {
		return ""
	}
	for _, t := range r.Tables {
		switch s, ok := t.Resumes[side]; {
		case ok && s.Plain && s.Shuffled:
			return "yes"
		case ok && s.Plain:
			return "yes, but for its shuffle"
		}
	}
	return "no"
}

// speed returns the embedded run.
func speed(t *testing.T) *speedReport {
	b, err := kept.ReadFile(speedFile)
	require.NoError(t, err)
	var r speedReport
	require.NoError(t, json.Unmarshal(b, &r), "run make bench-speed again")
	return &r
}

// rate writes rows a second with three digits.
func rate(v float64) string {
	for _, unit := range []string{"", " k", " M"} {
		if v < 999.5 || unit == " M" {
			return fmt.Sprintf("%.3g%s", v, unit)
		}
		v /= 1000
	}
	return ""
}

// TestReadmeHasTheMeasuredFigures compares README's table with the measured figures; MILLRACE_UPDATE=1 writes it.
func TestReadmeHasTheMeasuredFigures(t *testing.T) {
	const readme = "../../README.md"
	const (
		head = "<!-- speed: written by MILLRACE_UPDATE=1 go test ./capacity/results -->\n"
		tail = "<!-- end of speed -->\n"
	)
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(b), head)
	require.True(t, found, "README.md has no place for the table")
	got, after, found := strings.Cut(rest, tail)
	require.True(t, found)
	want := speed(t).markdown()
	if goldenfile.Updating() {
		require.NoError(t, os.WriteFile(readme, []byte(before+head+want+tail+after), 0o644))
		return
	}
	assert.Equal(t, want, got, "run MILLRACE_UPDATE=1 go test ./capacity/results")
}

func TestRate(t *testing.T) {
	for v, want := range map[float64]string{17969012: "18 M", 604321: "604 k", 12: "12", 999600: "1 M",
		1.2e9: "1.2e+03 M"} {
		assert.Equal(t, want, rate(v))
	}
}

// TestTheKeptSpeedIsWhole checks what the table takes for granted: the same sides of all data sets, and none that makes
// other values than Millrace.
func TestTheKeptSpeedIsWhole(t *testing.T) {
	r := speed(t)
	require.Len(t, r.Tables, 3)
	var resumes, modelled int
	for _, table := range r.Tables {
		require.Len(t, table.Lines, len(r.Tables[0].Lines))
		require.Equal(t, engineAlone, table.Lines[1].Side)
		for i, l := range table.Lines {
			assert.Equal(t, r.Tables[0].Lines[i].Side, l.Side)
			assert.Positive(t, l.RowsPerCPUSecond.Median, l.Side)
			if l.Work != "columns" && i > 1 {
				assert.True(t, strings.HasPrefix(l.Output, "equal"), l.Output)
			}
		}
		resumes += len(table.Resumes)
		if table.Modelled != nil {
			modelled++
		}
	}
	assert.Positive(t, resumes)
	assert.Equal(t, 1, modelled)
}

func TestSpeedInWords(t *testing.T) {
	var r speedReport
	require.NoError(t, json.Unmarshal([]byte(`{"header": {"cpu": "a core", "cores": 2, "time": "today", "commit": "c",
		"command": "make it", "rounds": 3, "load_before": "1", "load_after": "2"}, "tables": [{"title": "A", "lines": [
		{"side": "M", "work": "all", "rows_per_cpu_second": {"median": 2e6}},
		{"side": "Millrace's engine alone", "work": "all", "rows_per_cpu_second": {"median": 4e6}},
		{"side": "D", "work": "own hash", "rows_per_cpu_second": {"median": 1e6}},
		{"side": "H", "work": "columns", "rows_per_cpu_second": {"median": 1e5}}],
		"modelled": {"rows_per_second": 8e6, "command": "plan it"},
		"resumes": {"M": {"plain": true, "shuffled": true}, "H": {"plain": true, "shuffled": false}}}]}`), &r))
	text := r.markdown()
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, len(line), 121, line)
	}
	words := strings.Join(strings.Fields(text), " ")
	for _, part := range []string{"a core, 2 cores, today, commit c", "`make it`; load 1 before and 2 after",
		"Medians of 3 turns", "| | A | resumes exactly |", "| M | 2 M | yes |",
		"| Millrace's engine alone | 4 M | |", "| D, its own hash | 1 M | no |",
		"| H: columns only | 100 k | yes, but for its shuffle |", "*modelled* to make 8 M rows/s", "`plan it`"} {
		assert.Contains(t, words, part)
	}
}
