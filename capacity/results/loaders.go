package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// loadersFile is the file of `make bench-loaders LOADERS='--results capacity/results/loaders.json'`.
const loadersFile = "loaders.json"

// LoaderReport is one run of bench/peers/python/loaders.py: ways to feed a training loop in Python.
type LoaderReport struct {
	Header  Header            `json:"header"`
	Results []LoaderResult    `json:"results"`
	Skipped map[string]string `json:"skipped"` // why a side is not compared, by its name and its model
}

// LoaderResult is one side on one model.
type LoaderResult struct {
	Model         string  `json:"model"`
	Cores         int     `json:"cores"` // Each turn is bound to these.
	Side          string  `json:"side"`
	Rows          int64   `json:"rows"`
	RowsPerSecond float64 `json:"rows_per_second"` // The best turn had this rate.
}

// LoaderBase is the side that the others are compared with.
const LoaderBase = "Millrace"

// Loaders returns the embedded run of loaders.py. It returns nil without an error if there is none.
func Loaders() (*LoaderReport, error) {
	b, err := kept.ReadFile(loadersFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseLoaders(b)
}

func parseLoaders(b []byte) (*LoaderReport, error) {
	var r LoaderReport
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read capacity/results/%s: %w: run make bench-loaders again", loadersFile, err)
	}
	return &r, nil
}
