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

// didYouMean puts suggestions into words.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}
