//go:build !unix

package site

import "os"

// lockFile does nothing: there is no such lock here, and who changes the file last wins.
func lockFile(*os.File) error { return nil }
