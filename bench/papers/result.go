package papers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Kind is where a value of a run comes from.
type Kind string

// The kinds of values.
const (
	Modelled Kind = "modelled" // follows from a model's constants, on any machine
	Fitted   Kind = "fitted"   // modelled with a constant that was chosen so that another value of the paper comes out
	Measured Kind = "measured" // by a clock of the machine that ran
	Computed Kind = "computed" // follows from measured values by arithmetic; no run measured it
	Counted  Kind = "counted"  // bytes, rows or features, the same on any machine
	Kept     Kind = "kept"     // from the run of bench/peers that capacity/results keeps
	// Values that follow from two kinds.
	ModelledAndKept     Kind = "modelled, kept"
	ModelledAndMeasured Kind = "modelled, measured"
	FittedAndMeasured   Kind = "fitted, measured"
	ModelledAndComputed Kind = "modelled, computed"
	FittedAndComputed   Kind = "fitted, computed"
)

// Value is one value of a run.
type Value struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Kind  Kind    `json:"kind"`
}

// Result is a run for one paper.
type Result struct {
	Paper   string   `json:"paper"`
	Command string   `json:"command"`
	Time    string   `json:"time"`
	Seconds float64  `json:"elapsed_seconds"`
	Machine Machine  `json:"machine"`
	Notes   []string `json:"notes"`
	Kept    string   `json:"kept,omitempty"` // where the kept values come from
	Values  Values   `json:"values"`
}

// Values are the values of a run by their keys. In JSON they are a list in the order of the keys.
type Values map[string]Value

// keyedValue is an element of the list.
type keyedValue struct {
	Key string `json:"key"`
	Value
}

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	list := make([]keyedValue, 0, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		list = append(list, keyedValue{key, v[key]})
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler. A key that comes twice is an error.
func (v *Values) UnmarshalJSON(b []byte) error {
	var list []keyedValue
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*v = make(Values, len(list))
	for _, k := range list {
		if _, there := (*v)[k.Key]; there {
			return fmt.Errorf("two values have the key %q", k.Key)
		}
		(*v)[k.Key] = k.Value
	}
	return nil
}

// Machine is what a run was made on.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	System     string `json:"system"`
	Go         string `json:"go"`
	LoadBefore string `json:"load_before"` // It has the means over 1, 5 and 15 minutes, or is empty.
	LoadAfter  string `json:"load_after"`
}

// set keeps a value. A value that is not a number is a fault of the experiment.
func (r *Result) set(kind Kind, key, unit string, v float64) {
	r.Values[key] = Value{v, unit, kind}
}

// at returns a value that was set before.
func (r *Result) at(key string) float64 { return r.Values[key].Value }

// check returns an error if a value is not a finite number.
func (r *Result) check() error {
	for key, v := range r.Values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			return fmt.Errorf("papers: %s: value %s is %v", r.Paper, key, v.Value)
		}
	}
	return nil
}

// newResult begins a run.
func newResult(paper, command string) *Result {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), LoadBefore: load()}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		m.CPU = processorName(f)
		f.Close()
	}
	return &Result{Paper: paper, Command: command, Time: time.Now().UTC().Format("2006-01-02 15:04 MST"), Machine: m,
		Notes: []string{}, Values: Values{}}
}

// processorName returns name, family and model of /proc/cpuinfo: virtual machines often hide which AMD EPYC they have.
func processorName(r io.Reader) string {
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

// load returns the system's load averages.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(b)); err == nil && len(fields) > 2 {
		return strings.Join(fields[:3], " ")
	}
	return ""
}

// Write writes a result to its file in a folder.
func (r *Result) Write(folder string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, r.Paper+".json"), append(b, '\n'), 0o644)
}

// readResult reads a paper's result from its file in a folder.
func readResult(folder, paper string) (*Result, error) {
	path := filepath.Join(folder, paper+".json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("%s: %w: run `make reproduce` again", path, err)
	}
	if r.Paper != paper {
		return nil, fmt.Errorf("%s: it is a run for paper %q: run `make reproduce` again", path, r.Paper)
	}
	return &r, nil
}
