package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
)

// takeArguments adds arguments to --in: a shell expands an unquoted pattern into them.
func (i *input) takeArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && len(i.in) == 0 {
		return cli.Usagef("%s takes no arguments, got %q: files are named with --in", cmd.CommandPath(), args)
	}
	i.in = append(i.in, args...)
	return nil
}

// findFormat finds the format of the files unless --input-format names it.
func (i *input) findFormat(ctx context.Context, files []source.Location) error {
	if i.format != "" {
		return nil
	}
	resolver, err := i.far.resolver(files)
	if err != nil {
		return err
	}
	format, err := resolver.FindFormat(ctx, files)
	var (
		mixed   *partitionfile.MixedFormatsError
		unknown *partitionfile.UnknownFormatError
	)
	switch {
	case errors.As(err, &mixed):
		return cli.Usagef("%w; name them apart, or say --input-format", err)
	case errors.As(err, &unknown) && unknown.Content.Is != "" && !unknown.Content.IsText():
		return cli.WrongUsage(err)
	case errors.As(err, &unknown):
		return cli.Usagef("%w; if it holds Criteo's rows, say what it is with --input-format", err)
	}
	i.format = string(format)
	return err
}

// adviseImport adds to the error about a pipe that dataset import reads pipes.
func adviseImport(err error) error {
	if errors.Is(err, partitionfile.ErrNotRegular) {
		return fmt.Errorf("%w (for a pipe there is dataset import)", err)
	}
	return err
}
