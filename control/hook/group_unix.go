//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// killGroup makes the end of a command's context kill the command together with all processes that it started.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
