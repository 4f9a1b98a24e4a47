//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// killGroup has a command and everything that it starts killed together when its context ends.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
