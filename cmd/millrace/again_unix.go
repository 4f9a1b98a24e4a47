//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"github.com/millrace/millrace/cmd/cli"
)

// runAsUser runs this program once more as another user, which only root may; done is false where the process runs as
// that user already.
func (c configCommands) runAsUser(ctx context.Context, as string, args ...string) (done bool, err error) {
	u, err := user.Lookup(as)
	if err != nil {
		return false, cli.Usagef("--user %s: %w", as, err)
	}
	if u.Uid == strconv.Itoa(os.Geteuid()) {
		return false, nil
	}
	if os.Geteuid() != 0 {
		return false, cli.Usagef("--user %s: only root may look at it as another", as)
	}
	uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uerr, gerr); err != nil {
		return false, fmt.Errorf("user %s: %w", as, err)
	}
	groups, err := groupsOf(u)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Stdout, cmd.Stderr = c.Out, c.Err
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
		Uid: uint32(uid), Gid: uint32(gid), Groups: groups,
	}}
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return true, cli.ErrReported
	} else if err != nil {
		return false, fmt.Errorf("run as %s: %w", as, err)
	}
	return true, nil
}

// groupsOf are the numbers of a user's groups.
func groupsOf(u *user.User) ([]uint32, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	groups := make([]uint32, 0, len(ids))
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
		}
		groups = append(groups, uint32(n))
	}
	return groups, nil
}
