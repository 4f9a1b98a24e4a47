package cli

import "github.com/spf13/cobra"

// ZeroIsDefault are the flags whose default is the value 0. Their values must be above 0 if they are given.
var ZeroIsDefault = []string{"batch", "split-batches", "window", "streams", "spread", "stop-after"}

// refuseZero returns an error if a flag of ZeroIsDefault was given with the value 0.
func refuseZero(cmd *cobra.Command) error {
	for _, name := range ZeroIsDefault {
		if cmd.Flags().Changed(name) && cmd.Flags().Lookup(name).Value.String() == "0" {
			return Usagef("--%s 0: want 1 or more; leave the flag out for the default", name)
		}
	}
	return nil
}
