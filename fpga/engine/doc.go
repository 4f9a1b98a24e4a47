// Package engine runs slices of a device program over the drive's memory: it is what stands in the FPGA's place.
//
// # Overview
//
// [Engine.Execute] takes six memory ranges and the marshalled program.Slice, and leaves tensors in the output range and
// a program.Result in the result range. It keeps nothing between calls but compiled programs, by digest; everything else
// that lasts (a dictionary, an unpacked page) lies in the ranges and is checked when it is used again.
//
//	check     every number of the slice against the ranges and the program; then each task's page headers: do the
//	          window, the scratch and the dictionary room hold what its rows touch? If anything lacks, nothing is written; only of
//	          text, whose rows are found by decoding it, rows may be, which count for nothing and are written again
//	execute   task by task, page by page, block by block: decode a block of rows, run it through every sink's chain,
//	          write it to its final place. A block is small enough to stay in the first-level cache
//
// The check may pass over whole pages that the cursor skips, and then the returned cursor stands behind them; it may also
// decode a dictionary into its room when no other task of the slice names that room. Neither is output.
//
// # What a host must know
//
//   - Scratch holds a tag of TagBytes before an unpacked page and the page's header behind it; MoreRoom counts both.
//     Uncompressed pages need no scratch.
//   - A page that lies in scratch need not be in the window (program.Cursor.Unpacked): TaskResult.Page says how many bytes from
//     the cursor's page on can go. Should scratch hold something else after all, the window is wanted.
//   - Need of MoreInput counts from the cursor's page on, in the window or not. Ready rows can be had without more.
//   - The Off of a task's Dict (and for text sources of its Scratch) must be 8-byte aligned in memory.
//   - For a scalar column whose values are appended, Count values a key must fit behind Values, nulls or not.
//   - A column that feeds several keys of an output with lengths, and a text source of such an output, must get all
//     rows of the mini-batch in one task: a second key's values lie behind all of the first's.
//   - The tasks of a map's columns come one behind the other and for the same rows; they write the same number of rows. A map that feeds
//     several keys of an output with lengths wants room for its ids twice, and counts them in Values as they come: until the
//     task that ends with the mini-batch's last row they lie row by row.
//   - A text slice has exactly one task.
//   - Need of MoreInput is what lacks for sure plus, where page headers are not there yet, an estimate. A host that
//     cannot give so much asks for fewer rows: for one row Need is exact once the page's header is there.
//
// # Checksums
//
// The CRC of a packed page is verified when it is unpacked, that of an uncompressed page while its values are read and before the task
// ends, whatever of the page the task needs (lateSum says why), unless the slice's cursor says that the bytes in the window were verified before (program.Cursor.Checked): a page is the input of
// many slices. The engine has no way of its own to tell whether bytes were moved again: the moves are the controller's, and
// a mapped host writes where it likes. A tag over a sample of the bytes would not see a flipped bit, one over all of them
// is the checksum itself. So the mark is the host's word, as what lies in a window is. That is sound because nobody else depends
// on it: the checksum guards the host's own rows against the medium, and not the engine against the host; a
// decoder checks all that it reads. A host binds the mark to the move that brought the bytes, as package sdk does, so that
// it cannot outlive them.
//
// # Concurrency
//
// An Engine may execute any number of slices at once, one a calling goroutine; the caller bounds them (engine threads).
// Two executions must not share output, result, scratch or dictionary bytes.
//
// # Errors
//
// There are no Go errors: a slice ends in a program.State, and the result's message names the column, the page and the
// cause. An input may be hostile; no bytes of any range make Execute panic or touch memory outside its ranges.
//
// # Debugging
//
// Package reference computes the same mini-batches by the definition, and the tests hold the two against each other. The
// message of a result names the page by number and chunk offset, as parquet's own errors do.
package engine
