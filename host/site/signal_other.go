//go:build !unix

package site

import (
	"errors"
	"os"
	"os/exec"
)

// terminate ends a process. A process that has ended by itself meanwhile is not an error.
func terminate(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func detach(*exec.Cmd) {}
