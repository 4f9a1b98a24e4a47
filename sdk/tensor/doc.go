// Package tensor holds train-ready mini-batches: a drive's program writes them, a frame carries them over the wire, and
// a trainer takes them.
//
// A [MiniBatch] has up to five tensors, described by a [Schema]:
//
//	label        float32 [B]        none if the data has no label
//	dense        float32 [B, D]     row-major
//	kjt.values   int32 or int64 [N] feature-major, then by row
//	kjt.lengths  int32 [F, B]       left out when every length is 1 ([Schema.Fixed])
//	kjt.weights  float32 [N]        optional
//
// B is the number of rows, D of dense features, F of keys (sparse features), N of sparse values. The last three
// tensors are TorchRec's KeyedJaggedTensor (torchrec/sparse/jagged_tensor.py); [MiniBatch.Validate] checks its rules.
//
// The package also holds the forms in which a mini-batch is stored or sent:
//
//   - [Layout]: each tensor at a 64-byte boundary, without a header, in a drive's memory.
//   - the frame ([EncodeFrame], [AppendFrame], [ReadFrame]): a safetensors file whose data starts at a 64-byte
//     boundary. A mini-batch has exactly one frame, so that a mini-batch delivered again is byte for byte the same.
//   - npy ([NpyWriter]): all mini-batches of a run as one keyed jagged tensor in a folder of .npy files.
//
// Package arrowipc, below, holds the Arrow form. It is a package of its own so that only its importers link arrow-go.
//
// # Memory
//
// A mini-batch may lend memory that belongs to a drive. It then has a release function, and each of its holders calls
// [MiniBatch.Release] once. [MiniBatch.Retain] adds a holder. [MiniBatch.Clone] makes a copy with memory of its own.
// The tensors must not be used after the last Release.
//
// # Concurrency
//
// Tensors of a mini-batch are read-only once it has been handed on; any number of goroutines may read it. Retain and
// Release may be called from any goroutine. An [NpyWriter] has one owner.
//
// # Errors
//
// Frames are foreign bytes: [ReadFrame] returns errors that wrap [ErrFrame] and allocates nothing that the frame's own
// length does not bound. Shapes that do not agree are errors that wrap [ErrShape]. No input makes the package panic.
//
// # Debugging
//
// In a build with -tags debug, the last Release sets the slices of the tensors to nil, and a Release after it panics.
// [MiniBatch.Equal] compares bits, and [Diff] says where two mini-batches differ.
package tensor
