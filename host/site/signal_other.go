//go:build !unix

package site

import (
	"os"
	"os/exec"
)

// terminate ends a process.
func terminate(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func detach(*exec.Cmd) {}
