package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// suggestDistance is how many letters may differ between what was typed and what was meant.
const suggestDistance = 2

// suggestCommand names the commands that may have been meant, or returns "".
func suggestCommand(cmd *cobra.Command, typed string) string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = suggestDistance
	}
	return didYouMean(cmd.SuggestionsFor(typed))
}

// suggestFlag adds to the error of a flag that does not exist those that may have been meant.
func suggestFlag(cmd *cobra.Command, err error) error {
	missing := (*pflag.NotExistError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	// cobra compares names of commands: the flags are made some.
	names := &cobra.Command{SuggestionsMinimumDistance: suggestDistance}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	found := names.SuggestionsFor(missing.GetSpecifiedName())
	for i := range found {
		found[i] = "--" + found[i]
	}
	return fmt.Errorf("%w%s: see %s --help", err, didYouMean(found), cmd.CommandPath())
}

// wanted says what flags of a type take, for the types of pflag; our own types say it themselves.
var wanted = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "uint32": "a whole number from 0 on",
	"uint64": "a whole number from 0 on", "float64": "a number", "bool": "true or false",
	"duration": "a time, as 30s or 5m", "intSlice": "whole numbers with commas between",
}

// sayWanted replaces the reason why a flag's value is none by what the flag takes.
func sayWanted(err error) error {
	invalid := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &invalid) {
		return err
	}
	name, want := invalid.GetFlag().Name, wanted[invalid.GetFlag().Value.Type()]
	if want == "" {
		return fmt.Errorf("invalid argument for --%s: %w", name, invalid.Unwrap())
	}
	return fmt.Errorf("invalid argument %q for --%s: want %s", invalid.GetValue(), name, want)
}

// didYouMean puts suggestions into words.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}
