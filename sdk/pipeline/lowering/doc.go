// Package lowering makes the program that a drive runs of a resolved pipeline.
//
// [Lower] is for pipelines whose mini-batches the drive makes whole. [LowerWithLookups] also takes those whose rows a
// filter chooses, whose ids vocabularies replace, or whose keys become means of the label: a [Lowered] says what is
// left to whoever takes the drive's mini-batches, and [Lowered.LookUpInDrive] moves lookups into the program as far as
// the drive's memory reaches. Program.String of fpga/program shows a program.
//
// The package is pure. Errors are those of package problem, or wrap program.ErrInvalid where a pipeline exceeds a limit
// of programs.
package lowering
