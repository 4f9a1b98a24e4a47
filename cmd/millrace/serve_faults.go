package main

import (
	"fmt"
	"log/slog"

	"github.com/millrace/millrace/nvme/faults"
)

// injector reads the script of --faults; nil without one.
func (f *serveFlags) injector(log *slog.Logger) (*faults.Injector, error) {
	if f.faults == "" {
		return nil, nil
	}
	document, err := readDocument(f.faults)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	script, err := faults.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("--faults: %s:%w", f.faults, err)
	}
	return faults.New(script, faults.Options{Logger: log})
}
