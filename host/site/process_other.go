//go:build !linux

package site

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// lookUp returns the process of an id as ps reports it, or nil if there is none.
func lookUp(pid int) (*process, error) {
	ask := func(format string) (string, error) {
		out, err := exec.Command("ps", "-o", format, "-p", strconv.Itoa(pid)).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return "", nil
		}
		return strings.TrimSpace(string(out)), err
	}
	began, err := ask("lstart=")
	if err != nil || began == "" {
		return nil, err
	}
	state, err := ask("stat=")
	if err != nil || state == "" || strings.HasPrefix(state, "Z") {
		return nil, err
	}
	command, err := ask("command=")
	if err != nil || command == "" {
		return nil, err
	}
	return &process{PID: pid, Began: began, Command: strings.Fields(command)}, nil
}
