//go:build !linux

package endtoend

import (
	"errors"
	"os/exec"
	"testing"
)

// link is of Linux.
type link struct{}

func (*link) apart(*exec.Cmd)      {}
func (*link) plug(testing.TB, int) {}
func (*link) await() error         { return errors.New("links are of Linux") }
