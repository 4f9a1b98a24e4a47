//go:build !unix

package main

import (
	"context"

	"github.com/millrace/millrace/cmd/cli"
)

// runAsUser runs this program once more as another user, which only Unix can.
func (c configCommands) runAsUser(context.Context, string, ...string) (bool, error) {
	return false, cli.Usagef("--user: users are of Unix")
}
