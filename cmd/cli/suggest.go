package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// suggestDistance is the number of letters by which a suggestion may differ from the word that was typed.
const suggestDistance = 2

// suggestCommand returns the names of similar commands as a suggestion, or "".
func suggestCommand(cmd *cobra.Command, typed string) string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = suggestDistance
	}
	return didYouMean(cmd.SuggestionsFor(typed))
}

// suggestFlag adds similar flags to the error of a flag that does not exist.
func suggestFlag(cmd *cobra.Command, err error) error {
	missing := (*pflag.NotExistError)(nil)
	if !errors.As(err, &missing) {
		return err
	}
	// cobra compares names of commands only, so each flag becomes a command here.
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

// wanted maps pflag's types to the values that they take; the types of this module describe themselves.
var wanted = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "uint32": "a whole number from 0 on",
	"uint64": "a whole number from 0 on", "float64": "a number", "bool": "true or false",
	"duration": "a time, as 30s or 5m", "intSlice": "whole numbers with commas between",
}

// explainWanted replaces the parser's reason for refusing a flag's value by the values that the flag takes.
func explainWanted(err error) error {
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

// didYouMean returns suggestions as a question.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}
