//go:build !unix

package openfiles

import "io/fs"

// StateOf returns the state of a file.
func StateOf(info fs.FileInfo) State {
	return State{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

// descriptorLimit returns how many descriptors the process may have.
func descriptorLimit() int { return defaultLimit }
