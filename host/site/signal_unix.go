//go:build unix

package site

import (
	"os/exec"
	"syscall"
)

// terminate tells a process to end.
func terminate(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }

// apart gives a command a session of its own: an interrupt at the terminal, or its end, is not for it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
