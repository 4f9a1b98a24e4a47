package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// figure is a value that one process measured.
type figure struct {
	name  string // of the workload or the benchmark
	unit  string
	value float64
}

// The units of a workload's figures.
const (
	rowsPerSecond          = "rows/s"
	rowsPerProcessorSecond = "rows/processor-s"
	inputBytesPerRow       = "input-B/row"
)

// direction says what a larger value of a unit means.
type direction int

const (
	// neutral is the direction of units that are not speeds, as bytes. They are shown and never fail a comparison.
	neutral direction = iota
	moreIsFaster
	lessIsFaster
)

// directionOf returns the direction of a unit: rates end in "/s", and times begin with "sec/", since nanoseconds are
// read as seconds.
func directionOf(unit string) direction {
	switch {
	case strings.HasSuffix(unit, "/s") || unit == rowsPerProcessorSecond:
		return moreIsFaster
	case strings.HasPrefix(unit, "sec/"):
		return lessIsFaster
	}
	return neutral
}

// measurement is what one process of a revision's program measures.
type measurement struct {
	name string
	// arguments are those of the program.
	arguments []string
	// folder is where the program runs, relative to the revision's root.
	folder string
	read   func(report string) ([]figure, error)
}

// modelMeasurement measures a workload of millrace bench rm on one thread of the cpu engine. The seed is that of the
// command, so both revisions make the same rows.
func modelMeasurement(name string, duration time.Duration) measurement {
	return measurement{
		name: name,
		arguments: []string{"bench", "rm", "--models", name, "--engine", "cpu", "--threads", "1", "--time", duration.String(),
			"--output", "json"},
		folder: ".",
		read:   readModels,
	}
}

// benchmarkMeasurement measures the benchmarks of a package that match the pattern, each for the duration.
func benchmarkMeasurement(pkg, pattern string, duration time.Duration) measurement {
	return measurement{
		name: pkg,
		arguments: []string{"-test.run", "^$", "-test.bench", pattern, "-test.benchtime", duration.String(), "-test.benchmem",
			"-test.timeout", "0"},
		folder: pkg,
		read:   readBenchmarks,
	}
}

// readModels reads the report of millrace bench rm. A revision that does not measure processor time yet has no such
// figure.
func readModels(report string) ([]figure, error) {
	var models []struct {
		Model               string   `json:"model"`
		RowsPerSecond       *float64 `json:"rows_per_second"`
		CPURowsPerSecond    *float64 `json:"cpu_rows_per_second"`
		InputBytesPerSecond *float64 `json:"input_bytes_per_second"`
	}
	if err := json.Unmarshal([]byte(report), &models); err != nil {
		return nil, fmt.Errorf("the report of millrace bench rm: %w", err)
	}
	var figures []figure
	for _, m := range models {
		if m.Model == "" || m.RowsPerSecond == nil || !(*m.RowsPerSecond > 0) {
			return nil, fmt.Errorf("the report of millrace bench rm has no rows_per_second of model %q", m.Model)
		}
		figures = append(figures, figure{m.Model, rowsPerSecond, *m.RowsPerSecond})
		if m.CPURowsPerSecond != nil && *m.CPURowsPerSecond > 0 {
			figures = append(figures, figure{m.Model, rowsPerProcessorSecond, *m.CPURowsPerSecond})
		}
		if m.InputBytesPerSecond != nil {
			figures = append(figures, figure{m.Model, inputBytesPerRow, *m.InputBytesPerSecond / *m.RowsPerSecond})
		}
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("the report of millrace bench rm has no model")
	}
	return figures, nil
}

// readBenchmarks reads what benchmarks of Go print.
func readBenchmarks(report string) ([]figure, error) {
	reader := benchfmt.NewReader(strings.NewReader(report), "the benchmarks")
	var figures []figure
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			for _, v := range record.Values {
				if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
					return nil, fmt.Errorf("benchmark %s: its %s is not a number", record.Name, v.Unit)
				}
				figures = append(figures, figure{string(record.Name), v.Unit, v.Value})
			}
		case *benchfmt.SyntaxError:
			return nil, record
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("no benchmark ran: the pattern of -benchmark matches none of the package")
	}
	return figures, nil
}

// measureRound measures both revisions once. Odd rounds begin with the newer one, so that what drifts, as the clock of
// the processor does, favours neither.
func (c *comparison) measureRound(
	ctx context.Context, round, rounds int, measurements []measurement, to io.Writer,
) error {
	order := []*side{c.older, c.newer}
	if round%2 == 1 {
		order[0], order[1] = order[1], order[0]
	}
	for _, m := range measurements {
		for _, s := range order {
			report, err := output(ctx, filepath.Join(s.root, m.folder), s.program, m.arguments...)
			if err != nil {
				return fmt.Errorf("%s revision: %w", s.role, err)
			}
			figures, err := m.read(report)
			if err != nil {
				return fmt.Errorf("%s revision: %w", s.role, err)
			}
			s.figures = append(s.figures, figures...)
			fmt.Fprintf(to, "round %d of %d, %s: %s\n", round+1, rounds, s.role, inOneLine(m.name, figures))
		}
	}
	return nil
}

// speeds returns how many speeds of the older revision there are.
func (c *comparison) speeds() int {
	_, keys := valuesOf(c.older.figures)
	return len(slices.DeleteFunc(keys, func(key figure) bool { return directionOf(key.unit) == neutral }))
}

// inOneLine returns the speeds among figures in one line. Of benchmarks it returns their number.
func inOneLine(name string, figures []figure) string {
	var parts []string
	for _, f := range figures {
		if directionOf(f.unit) != neutral {
			parts = append(parts, scaled(f.value, f.unit))
		}
	}
	if len(parts) > 4 {
		return fmt.Sprintf("%s, %d figures", name, len(figures))
	}
	return name + ", " + strings.Join(parts, ", ")
}

// writeBenchmarks writes figures in Go's format of benchmarks, one line for each value.
func writeBenchmarks(to *bytes.Buffer, figures []figure) {
	for _, f := range figures {
		fmt.Fprintf(to, "Benchmark%s 1 %v %s\n", strings.ToUpper(f.name[:1])+f.name[1:], f.value, f.unit)
	}
}
