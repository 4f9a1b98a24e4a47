package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report holds the results of a run.
type report struct {
	Header header  `json:"header"`
	Tables []table `json:"tables"`
}

// header describes the machine and the command of a run.
type header struct {
	Time     string   `json:"time"`
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Core     int      `json:"core"` // all were tied to, -1 for none
	System   string   `json:"system"`
	Go       string   `json:"go"`
	Commit   string   `json:"commit"`
	Command  string   `json:"command"`
	Versions []string `json:"versions"`
	Threads  int      `json:"threads"` // of each contender
	Rounds   int      `json:"rounds"`
	Seconds  float64  `json:"least_seconds"`
	Load     string   `json:"load_before"` // averages over 1, 5 and 15 minutes, before the run
}

// table is one file.
type table struct {
	Model     string `json:"model"`
	Layout    string `json:"layout"`
	Rows      int64  `json:"rows"`
	FileBytes int    `json:"file_bytes"`
	Lines     []line `json:"lines"` // ours is the first
}

// line is one contender.
type line struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Output string `json:"output"` // how it compares with ours
	Timed  bool   `json:"timed"`
	// By the wall's clock and by the processor's.
	RowsPerSecond    spread `json:"rows_per_second"`
	RowsPerCPUSecond spread `json:"rows_per_cpu_second"`
	// How many times as fast ours is, round by round.
	Ratio    spread   `json:"ratio"`
	CPURatio spread   `json:"cpu_ratio"`
	Samples  []sample `json:"samples,omitempty"`
}

func newHeader(ctx context.Context, o options, core int) header {
	h := header{Time: time.Now().UTC().Format("2006-01-02 15:04 MST"), CPU: "unknown", Cores: runtime.NumCPU(),
		Core: core, System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Commit: commit(ctx), Command: o.command(), Threads: o.threads, Rounds: o.rounds,
		Seconds: o.least.Seconds(), Versions: versions()}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		h.CPU = cpuModel(f)
		f.Close()
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 2 {
			h.Load = strings.Join(fields[:3], " ")
		}
	}
	return h
}

// cpuModel reads name, family and model: virtual machines often hide which AMD EPYC it is.
func cpuModel(r io.Reader) string {
	found := map[string]string{}
	for s := bufio.NewScanner(r); s.Scan(); {
		k, v, _ := strings.Cut(s.Text(), ":")
		if k = strings.TrimSpace(k); found[k] == "" {
			found[k] = strings.TrimSpace(v)
		}
	}
	if found["model name"] == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s, family %s, model %s", found["model name"], found["cpu family"], found["model"])
}

// commit names the tree, with a + if tracked files outside capacity/results differ from it.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(out))
	if out, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":/",
		":(exclude,top)capacity/results").Output(); err != nil || len(out) > 0 {
		name += "+"
	}
	return name
}

// versions are those of the linked peers.
func versions() []string {
	var v []string
	if d := duckVersion(); d != "" {
		v = append(v, d)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/apache/arrow-go/v18", "github.com/parquet-go/parquet-go", "github.com/duckdb/duckdb-go/v2",
				"github.com/duckdb/duckdb-go/mapping":
				v = append(v, filepath.Base(filepath.Dir(m.Path))+"/"+filepath.Base(m.Path)+" "+m.Version)
			}
		}
	}
	return v
}

// fill computes a table's figures from samples; those of ours are the first.
func (l *line) fill(ours, own []sample) {
	wall, cpu := rates(own)
	oursWall, oursCPU := rates(ours)
	l.Timed, l.Samples = true, own
	l.RowsPerSecond, l.RowsPerCPUSecond = spreadOf(wall), spreadOf(cpu)
	l.Ratio, l.CPURatio = spreadOf(ratios(oursWall, wall)), spreadOf(ratios(oursCPU, cpu))
}

// name is of the report's files: peers or vocabularies, and with threads peers-2 for two.
func (r *report) name() string {
	name := "peers"
	if r.vocabularies() {
		name = "vocabularies"
	}
	if r.Header.Threads > 1 {
		name = fmt.Sprintf("%s-%d", name, r.Header.Threads)
	}
	return name
}

// vocabularies reports whether the tables are of workloads with vocabularies.
func (r *report) vocabularies() bool {
	if len(r.Tables) == 0 {
		return false
	}
	_, ok := findVocabularyWork(r.Tables[0].Model)
	return ok
}

// save writes the report as NAME.json and NAME.md.
func (r *report) save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, r.name()+".json"), append(b, '\n'), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.name()+".md"), []byte(r.markdown()), 0o666)
}

// markdown writes the tables for people.
func (r *report) markdown() string {
	var b strings.Builder
	h := r.Header
	cores, tied := "One core each", fmt.Sprintf("%d, all tied to number %d", h.Cores, h.Core)
	switch {
	case h.Threads > 1 && r.vocabularies():
		cores, tied = fmt.Sprintf("%d threads each", h.Threads), fmt.Sprintf("%d, not tied to cores", h.Cores)
	case h.Threads > 1:
		cores, tied = fmt.Sprintf("%d threads each, with a file for each thread", h.Threads),
			fmt.Sprintf("%d, not tied to cores", h.Cores)
	case h.Core < 0:
		tied = fmt.Sprintf("%d, not tied to cores", h.Cores)
	}
	fmt.Fprintf(&b, `# Ours and the peers

%s, in turn: %d rounds of at least %v s. Medians, and in brackets the least and the most of the rounds. *Times* is how
many times as fast ours is, round by round. *By CPU time* counts the processor's seconds instead of the wall's, which
another program on the core does not disturb. Ours makes train-ready mini-batches; peers are asked for columns only.
bench/peers/doc.go says what is compared and how.

| | |
|---|---|
| when | %s |
| processor | %s; %s |
| system | %s, %s; load before the run %s |
| versions | %s |
| commit | %s |
| command | `+"`%s`"+` |
`, cores, h.Rounds, h.Seconds, h.Time, h.CPU, tied, h.System, h.Go, h.Load, strings.Join(h.Versions, "; "), h.Commit,
		h.Command)
	what := map[string]string{}
	var names []string
	for _, t := range r.Tables {
		fmt.Fprintf(&b,
			"\n## %s\n\n"+
				"| | rows/s | times | rows/s by CPU time | times by CPU time | output |\n|---|---|---|---|---|---|\n",
			t.title())
		for _, l := range t.Lines {
			if what[l.Name] == "" {
				what[l.Name] = l.What
				names = append(names, l.Name)
			}
			if !l.Timed {
				fmt.Fprintf(&b, "| %s | | | | | %s |\n", l.Name, l.Output)
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Name, of(l.RowsPerSecond, si), of(l.Ratio, times),
				of(l.RowsPerCPUSecond, si), of(l.CPURatio, times), l.Output)
		}
	}
	b.WriteString("\n## Who they are\n\n")
	for _, n := range names {
		fmt.Fprintf(&b, "- **%s**: %s.\n", n, what[n])
	}
	return b.String()
}

func of(s spread, text func(float64) string) string {
	return fmt.Sprintf("%s (%s..%s)", text(s.Median), text(s.Min), text(s.Max))
}

// si writes rows a second with three digits.
func si(v float64) string {
	switch {
	case v >= 999_500: // which three digits make 1.00 M
		return digits(v/1e6) + " M"
	case v >= 999.5:
		return digits(v/1e3) + " k"
	}
	return digits(v)
}

func times(v float64) string { return digits(v) }

// digits writes three of them.
func digits(v float64) string {
	if v <= 0 {
		return "0"
	}
	places := 2 - int(math.Floor(math.Log10(v)))
	if math.Round(v*math.Pow10(places)) >= 1000 { // 9.996 is 10.0
		places--
	}
	return fmt.Sprintf("%.*f", max(0, places), v)
}
