//go:build !linux

package guest

import (
	"os/exec"
	"syscall"
)

func endWithParent() *syscall.SysProcAttr { return nil }

func start(cmd *exec.Cmd) (<-chan error, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return exited, nil
}
