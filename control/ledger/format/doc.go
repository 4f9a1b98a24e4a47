// Package format has the records in which the ledger keeps a job: their bytes, their keys, and what they refuse. It is
// pure. Package ledger decides which records to write, and the control plane's leader writes them to etcd.
//
// A job has one record of its ranks. Each of its epochs has a mark, before which every split is delivered, and a chunk
// for each 1,024 splits behind the mark of which something is delivered. One state has one record, byte for byte, but
// for the fence in the header. The comment above [RecordVersion] has every byte.
//
// # Concurrency
//
// The functions may be called from any goroutine. They keep none of the slices that they are given, except that
// [RecordOf] keeps the value in [Record].
//
// # Errors
//
// [ErrRecord] says that the bytes of a record, or its key, are none that this build writes, or are those of another
// plan. The rest of the message names the record and what differs.
//
// # Debugging
//
// The golden files in testdata have a record of each kind in hex.
package format
