package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// namesFlag is a flag of names of files with commas between (pflag.Value); it may be given again. A value that is the
// name of a file, commas included, is that file.
type namesFlag struct{ to *[]string }

// addNames adds a flag of names of files.
func addNames(f *pflag.FlagSet, to *[]string, name, usage string) { f.Var(namesFlag{to}, name, usage) }

// Set adds the names of a value.
func (n namesFlag) Set(value string) error {
	if value == "" {
		return nil
	}
	names := []string{value}
	if _, err := os.Lstat(value); err != nil {
		if names, err = csv.NewReader(strings.NewReader(value)).Read(); err != nil {
			return fmt.Errorf("%q: want names of files with commas between: %w", value, err)
		}
	}
	*n.to = append(*n.to, names...)
	return nil
}

// String is the value.
func (n namesFlag) String() string {
	if n.to == nil {
		return ""
	}
	return strings.Join(*n.to, ",")
}

// Type is how help names the value.
func (namesFlag) Type() string { return "names" }
