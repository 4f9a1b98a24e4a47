// Package health reads a drive's health, and checks that the drive works.
//
// # Overview
//
// [Read] reads a drive's SMART log (02h) as typed values. A value that the drive does not know or does not report is
// nil, and never a zero that looks like a value.
//
// [Validate] tries a drive in steps: link, identify, contents, flash, memory, move, self-test. Every step passes, fails
// or is skipped, and says why. Each step has its own deadline, so that a drive that hangs ends as a failed step.
// Validate changes nothing that is in use: the flash step writes to a range that the volume does not use and that holds
// only zeros, and puts the zeros back.
//
// # Concurrency
//
// The functions hold no state. While Validate runs, nothing else may write to the drive; for a drive behind the
// kernel, Validate makes sure that no file system of the drive is mounted.
//
// # Errors
//
// The errors of Read name the drive. Validate returns results, not errors.
//
// # Debugging
//
// Check.Detail says what was tried, with the result.
package health
