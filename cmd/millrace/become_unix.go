//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// become makes this process that of another program, which has the streams, the signals and the exit status.
func become(_ *cobra.Command, program string, args []string) error {
	err := syscall.Exec(program, append([]string{filepath.Base(program)}, args...), os.Environ())
	return fmt.Errorf("run %s: %w", program, err)
}
