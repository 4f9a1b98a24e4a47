//go:build !unix

package filelock

import "os"

// Lock does nothing: this system has no such lock, and the last program that changes a file wins.
func Lock(*os.File) error { return nil }

// TryLock does nothing: this system has no such lock.
func TryLock(*os.File) error { return nil }
