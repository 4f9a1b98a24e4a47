// Package filelock lets programs use a file or a folder one at a time.
package filelock
