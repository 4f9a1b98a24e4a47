//go:build !unix

package main

import "context"

// runAsUser runs this program once more as another user, which only Unix can.
func (c configCommands) runAsUser(context.Context, string, ...string) (bool, error) {
	return false, usagef("--user: users are of Unix")
}
