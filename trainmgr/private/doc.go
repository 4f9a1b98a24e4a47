// Package private is the preprocessing of one machine for trainers in Python: a process of its own, which a trainer
// starts and which ends with the trainer. The command `millrace private` runs it, and millrace.open of the Python
// package starts the command.
//
// # Overview
//
// [Serve] talks to the trainer over one connected unix socket that the process was given. The trainer sends one
// [Open]: files, pipeline, how rows are cut into mini-batches, its rank. The process opens the files as a drive of this
// machine (package trainmgr/local), answers [Opened], and makes the rank's mini-batches ahead of the trainer, epoch
// after epoch. Several local ranks share the process: the rank that starts the process names a socket in its Open, and
// the others connect to that socket. The answers to all Opens are sent when all local ranks have come.
//
// Each mini-batch lies as a frame (tensor.Frame, the bytes that a storage node sends) in shared memory: one memory
// file (memfd) a [buffer], sealed against every change of its size and against writers other than this process. The
// descriptor is passed once, with [Buffer]; afterwards [MiniBatch] names the buffer. The trainer returns a buffer
// with Free when the last tensor in the buffer is gone. Buffers are bounded in bytes and form the input queue: if
// the trainer takes no mini-batch, the engines stop.
//
// # The protocol
//
// A message is its length (four bytes, little-endian, at most [MaxMessage]) and a JSON object of one of the types of
// message.go; the object's member kind names the type. Descriptors travel with the first byte of the Buffer that
// they belong to.
//
//	trainer                                process
//	open {version 1, files, ...}    ->
//	                                <-     opened {digest, schema, epochs, owned, token} | failed {code, message, ...}
//	                                <-     buffer {buffer 0, bytes, limit} + descriptor
//	                                <-     minibatch {generation 0, buffer 0, bytes, epoch, number}
//	free {buffer 0}                 ->
//	                                <-     retired {buffer 0}          (too small for what comes; the trainer closes it)
//	seek {generation 1, token}      ->                                 (go to another position)
//	                                <-     sought {generation 1, epoch, token} | failed
//	leave {}                        ->                                 (this rank is through)
//
// The process does not know which mini-batches the trainer acknowledged: the trainer keeps their numbers. Its token
// (dataset.Token) equals the token of a job of trainmgr/local over the same files, pipeline and plan, so that the
// trainer can resume with it in any process.
//
// # Lifetime
//
// The process ends when the connection that it was started with ends, however the trainer died. It also ends when
// the process that started it is gone while a forked child of that process holds the connection. If the starting
// rank leaves properly, the process serves the other ranks to their end. Signals do not end it: a terminal's
// interrupt is for the trainer, which may still write a checkpoint. Shared memory is gone with the last process that
// has it open or mapped. There are no files: the socket of several ranks is abstract, and accepts processes of the
// same user only. The first rank ends its name with random characters, so that no other user can take the name; the
// other ranks find it in /proc/net/unix, and pass over sockets of other users.
//
// # Concurrency
//
// Serve returns when every session has ended. A session has three goroutines: one reads messages, one makes
// mini-batches, one connection of its own carries both directions.
//
// # Errors
//
// The process sends the error that ends a rank's session as [Failed], with the place: file, column, row group, page,
// line. [ErrProtocol] says that the other side does not speak this protocol.
//
// # Debugging
//
// The process inherits standard error, and logs there with --verbose (MILLRACE_PRIVATE_LOG=1 in the trainer's
// environment). SIGQUIT prints every goroutine.
package private
