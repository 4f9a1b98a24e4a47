package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// choice is a flag that takes one of some words (pflag.Value).
type choice struct {
	to    *string
	words []string
}

// AddChoice adds a flag that takes one of some words, and refuses every other value. value is the default, which need
// not be one of them.
func AddChoice(f *pflag.FlagSet, to *string, name, value, usage string, words ...string) {
	*to = value
	f.Var(choice{to, words}, name, usage)
}

// Set sets the flag's value.
func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		last := len(c.words) - 1
		return fmt.Errorf("%q: want %s or %s", s, strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.to = s
	return nil
}

// String is the value.
func (c choice) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}

// Type is how help names the value.
func (choice) Type() string { return "string" }
