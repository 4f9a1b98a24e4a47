// Package engine executes slices of a device program over the drive's memory. It does the work that the FPGA's
// processing elements do in a drive with an FPGA.
//
// # Overview
//
// [Engine.Execute] takes seven memory ranges and a marshalled program.Slice. It leaves tensors in the output range and
// a program.Result in the result range. Between calls the engine keeps only compiled programs, by digest. Everything
// else that lasts (a dictionary, an unpacked page) lies in the ranges, and the engine checks it when it uses it
// again.
//
// # The way of the data through a slice
//
//  1. An executor (executor.go) decodes the slice and takes the compiled program from the cache (programcache.go,
//     compiledprogram.go).
//  2. The check (slicecheck.go) compares every number of the slice with the ranges and the program. Package chunk then
//     walks each task's page headers and finds whether window, scratch and dictionary room hold what the task's rows
//     touch. If a task lacks memory or bytes, the result names the kind and the amount, and nothing is written. Text is
//     the exception: the engine finds its rows by decoding them, so a slice may write rows that do not count. The next
//     slice writes those rows again.
//  3. The execution goes task by task, page by page, block by block. Package chunk verifies a page, unpacks it into
//     scratch if it is compressed, and decodes a block of rows, small enough to stay in the first-level cache. A
//     rowScan (rowscan.go) says how many rows come next.
//  4. A chain of operators (package chain) transforms the block's values for each sink. The steps of package kernels do
//     the work, with the units of fpga/unit.
//  5. The tensors take the values at their final place (package tensors).
//
// The leaves of a map are read side by side (mapplan.go, mapreader.go, mapfeatures.go), and their ids are put in the
// order of keys at the end of the mini-batch. The columns of a graph are read in the same way; the steps are computed
// for as many rows of a block as the second-level cache holds (graphplan.go, graphvalues.go). Text and binary rows have
// one task for all columns (textsource.go).
//
// The check may pass whole pages that the cursor skips; the returned cursor then stands behind them. It may also decode
// a dictionary into its room if no other task of the slice names that room. Neither is output.
//
// # What a host must know
//
//   - Scratch holds a tag of chunk.TagBytes before an unpacked page and the page's header behind it. MoreScratch counts
//     both. Uncompressed pages need no scratch.
//   - A page that lies in scratch need not be in the window (program.Cursor.Unpacked): TaskResult.Page says how many
//     bytes from the cursor's page on the host may drop. If scratch holds another page, the engine requests the
//     window.
//   - Need of MoreInput counts from the cursor's page on, whether or not the page is in the window. A host can ask
//     for the rows in the window (TaskResult.RowsInWindow) without giving more bytes.
//   - The Off of a task's Dict (and for text sources of its Scratch) must be 8-byte aligned in memory.
//   - For a scalar column whose values are appended, Count values a key must fit behind Values, nulls or not.
//   - A column that feeds several keys of an output with lengths, and a text source of such an output, must get all
//     rows of the mini-batch in one task: a second key's values lie behind all values of the first.
//   - The tasks of the columns of a map or a graph come one behind the other and for the same rows, and write the
//     same number of rows. A map or a graph that feeds several keys of an output with lengths needs room for its ids
//     twice, and Values counts the ids written so far: they lie row by row until the task that ends with the
//     mini-batch's last row has put them in order.
//   - A text slice has exactly one task.
//   - Need of MoreInput is the number of bytes that certainly lack plus, where page headers are not there yet, an
//     estimate. A host that cannot give Need bytes asks for fewer rows: for one row Need is exact once the page's
//     header is there.
//
// # Lookup tables
//
// The tables of vocabularies lie in the tables range, and lookups read them where they lie (lookuptables.go): a table
// takes no other memory, belongs to the association that holds the range, and goes with it. The program names a
// table's SHA-256. The engine verifies it before a slice does anything, unless the slice says that it was verified
// (program.Slice.TablesChecked); the engine trusts that mark as it trusts the mark of a page's checksum. A host that
// marks bytes which were never verified, or changes them later, gets wrong ids in its own mini-batches and no more.
//
// # Concurrency
//
// An Engine may execute any number of slices at once, one for each calling goroutine; the caller bounds their number
// (engine threads). Two executions must not share output, result, scratch or dictionary bytes. An executor belongs to
// one goroutine while it executes a slice; Engine.mu guards the idle executors and programCache.mu the compiled
// programs.
//
// # Errors
//
// Execute returns no Go error: a slice ends in a program.State, and the result's message names the column, the page and
// the cause. Inside the package a Error carries the state. Input may be hostile: no bytes of any range make
// Execute panic or touch memory outside its ranges.
//
// # Debugging
//
// Package reference computes the same mini-batches by the definition, and the tests compare the two. A result's
// message names the page by number and chunk offset, as the errors of the Parquet unit do. [Engine.Measure] reports
// how often each unit ran and for how long.
package engine
