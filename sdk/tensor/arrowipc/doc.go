// Package arrowipc writes mini-batches as Arrow IPC files, which pyarrow, arrow-go and other libraries read.
//
// A file has one record batch of one row for each mini-batch. Its columns, all large_list and without nulls, are the
// tensors that the schema has:
//
//	dense        large_list<float32>         row-major [B, D]; large_list<uint16>, the bits, if it is bfloat16
//	label        large_list<float32>         [B]
//	kjt.values   large_list<int32 or int64>  feature-major, then by row
//	kjt.lengths  large_list<int32>           [F, B]; no column when every length is 1
//	kjt.weights  large_list<float32>         as kjt.values
//
// The schema's metadata, all strings:
//
//	millrace.format          millrace.arrow/1, or millrace.arrow/2 if dense is bfloat16
//	millrace.shapes          {"dense":D,"keys":F}
//	millrace.dense           JSON list of the dense features' names
//	millrace.keys            JSON list of the keys' names
//	millrace.num_embeddings  JSON list, one for each key; 0 if the ids are not bounded
//	millrace.list            JSON list, one for each key; false if every row has exactly one id
//	millrace.lengths         ones, only if kjt.lengths is left out
//	millrace.dense_type      bfloat16, only if dense is that: Arrow has no type for it
//
// and each record batch's own (Message) metadata:
//
//	millrace.name            JOB/EPOCH/NUMBER
//	millrace.rows            B
//
// The same mini-batches give the same bytes. Every tensor lies at a multiple of 64 bytes, so a program can map a file
// into its memory and take the tensors where they are. The format is that of Arrow's columnar format 1.5, section IPC
// File Format.
//
// # Concurrency
//
// A Writer has one owner.
//
// # Errors
//
// Errors name the file's mini-batch by its index.
//
// # Debugging
//
// pyarrow.ipc.open_file(path) reads a file; get_batch_with_custom_metadata(i) shows a mini-batch's name.
package arrowipc
