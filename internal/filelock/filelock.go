// Package filelock lets programs use a file or a folder one at a time.
package filelock

import "errors"

// ErrLocked says that another program has the lock.
var ErrLocked = errors.New("another program has the lock")
