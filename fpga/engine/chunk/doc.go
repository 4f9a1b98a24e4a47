// Package chunk reads the rows of a column chunk from the window that a slice gives a task.
//
// # Overview
//
// A [Task] is a task of a slice on its way: what it asks for, its memory, its cursor, and why it stopped. Before
// anything is written [Reader.CheckPages] walks its page headers. Then [Reader.OpenPage] opens page after page, and
// [Reader.DecodeBlock] and [Reader.ReadLastRow] decode blocks of rows, in the form in which the file has them, which
// [Reader.BringBlock] converts to the kind of the [Column]. The cursor moves when the caller has written the rows
// ([Reader.MoveBehindBlock]).
//
// # Checksums
//
// The engine verifies the CRC of a compressed page when it unpacks the page. It verifies the CRC of an uncompressed
// page while it reads the values, and at the latest when the task ends, even if the task needs only a part of the
// page (pendingchecksum.go). The engine does not verify a page again if the slice's cursor says that the page's bytes
// in the window were verified before (program.Cursor.Checked): a page is the input of many slices.
//
// The engine cannot detect that bytes in the window were replaced after it verified them: the controller moves
// bytes, and a host that maps the memory writes to any address. A tag over a sample of the bytes would miss a
// flipped bit, and a tag over all bytes is the checksum itself. So the engine trusts the host's mark, as it trusts
// the window. That is sound because the checksum guards the host's own rows against the medium, and does not guard
// the engine against the host: a decoder checks every byte that it reads. A host binds the mark to the move that
// brought the bytes, as package sdk does, so that the mark cannot outlive them.
//
// # Places of values
//
// PLAIN byte arrays are found by reading all lengths before them. A page of them holds many mini-batches, so the cursor
// that a slice returns says at which byte of the page the next row's value lies (program.Cursor.ValueAt), and the next
// slice begins there. The engine trusts the place as it trusts the mark above: a wrong one costs the host its own rows.
//
// A page of lists of version 2 ends with a row. The cursor behind it says so in the same field (program.PageBeginsRow),
// and the next slice refuses a page of version 1 that begins inside that row.
//
// # Concurrency
//
// A reader and its tasks belong to one goroutine.
//
// # Errors
//
// Errors name the column and the page, and carry the state in which they end the slice (package failure). A lack of
// memory or bytes is not an error: the task stops ([Task.StopEarly]).
package chunk
