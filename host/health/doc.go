// Package health tells how a drive is, and whether it does what it should.
//
// # Overview
//
// [Read] reads a drive's SMART log (02h) as typed values. What the drive cannot know or does not report is nil, never a
// zero that looks like one.
//
// [Validate] tries a drive: link, identify, flash, memory, move, self-test. Every step passes, fails or is skipped, and
// says why; a step has a deadline of its own, so that a drive that hangs ends as a failed step. It changes nothing that
// anybody uses: the flash step writes to a range that the volume does not use and that holds only zeros, and puts the
// zeros back.
//
// # Concurrency
//
// Functions hold no state. Validate wants nobody else to write to the drive meanwhile; of a drive behind the kernel it
// makes sure that no file system is mounted.
//
// # Errors
//
// Read's carry the drive. Validate returns results, not errors.
//
// # Debugging
//
// Check.Detail says what was tried and what came of it.
package health
