//go:build !unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// become runs another program and ends this process with its exit status.
func become(cmd *cobra.Command, program string, args []string) error {
	other := exec.CommandContext(cmd.Context(), program, args...)
	other.Stdin, other.Stdout, other.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := other.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		os.Exit(other.ProcessState.ExitCode())
	}
	return fmt.Errorf("run %s: %w", program, err)
}
