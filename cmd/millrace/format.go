package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/host/partitionfile"
)

// more takes arguments for further values of --in, which a shell makes of a pattern that is not quoted.
func (i *input) more(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && len(i.in) == 0 {
		return usagef("%s takes no arguments, got %q: files are named with --in", cmd.CommandPath(), args)
	}
	i.in = append(i.in, args...)
	return nil
}

// find sets the format of files where no flag has.
func (i *input) find(files []string) error {
	if i.format != "" {
		return nil
	}
	format, err := partitionfile.FindFormat(files)
	var (
		mixed   *partitionfile.MixedFormatsError
		unknown *partitionfile.UnknownFormatError
	)
	switch {
	case errors.As(err, &mixed):
		return usagef("%w; name them apart, or say --input-format", err)
	case errors.As(err, &unknown):
		return usagef("%w: say what it is with --input-format", err)
	}
	i.format = string(format)
	return err
}

// adviseImport adds to the error of a pipe that dataset import reads it.
func adviseImport(err error) error {
	if errors.Is(err, partitionfile.ErrNotRegular) {
		return fmt.Errorf("%w (for a pipe there is dataset import)", err)
	}
	return err
}
