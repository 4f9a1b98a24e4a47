// Package openfiles reads more files than a process may have open.
//
// # Overview
//
// A [Pool] has a budget of descriptors. [Pool.Open] opens a regular file and notes its state: device, inode, size and
// the time of the last write. [File.ReadAt] reads it. When more files are open than the budget allows, the pool closes
// the descriptor of the file that was used longest ago, and opens it again by its path when it is read. A file that is
// opened again must have the state of the first opening; otherwise the error is a *[ChangedError].
//
// [File.Acquire] keeps a file's descriptor open until [File.Release], for calls that need a descriptor. Acquired
// descriptors may exceed the budget, so that no reader waits for another one.
//
// # Concurrency
//
// Pools and files are safe for concurrent use. A pool has no goroutines. Files are opened and closed outside its lock.
//
// # Errors
//
// Errors of the file system name the path. An error that wraps ErrNotRegular says that the path is not a regular file.
// If the process may not open more files, the pool closes its idle descriptors and tries again before it fails.
//
// # Debugging
//
// /proc/PID/fd shows which files are open now.
package openfiles
