//go:build unix

package site

import (
	"errors"
	"os/exec"
	"syscall"
)

// terminate tells a process to end. A process that has ended by itself meanwhile is not an error.
func terminate(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// detach gives a command a session of its own, so that an interrupt at the terminal, or the terminal's end, does not
// reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
