//go:build unix

package site

import (
	"os/exec"
	"syscall"
)

// terminate tells a process to end.
func terminate(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }

// detach gives a command a session of its own, so that an interrupt at the terminal, or the terminal's end, does not
// reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
