//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// Lock does nothing: this system has no such lock, and the last program that changes a file wins.
func Lock(*os.File) error { return nil }

// TryLock returns errors.ErrUnsupported: this system has no such lock.
func TryLock(*os.File) error { return errors.ErrUnsupported }
