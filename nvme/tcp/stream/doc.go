// Package stream receives and sends the PDUs of a connection, for the target and for the initiator.
//
// # Overview
//
// A [Reader] takes PDUs from a connection and their data to where it belongs. An [Outbox] sends messages, each of which
// the caller turns into the bytes of a [Batch]. A connection has no goroutine of its own for writing: a sender that
// finds no write in progress writes its own message and the messages that arrive meanwhile. A goroutine that receives
// never writes: two sides that both write and do not read would wait for each other.
//
// # Concurrency
//
// One goroutine uses a Reader. An Outbox is safe for concurrent use. The times in Reader.Awaits and Outbox.Writing may
// be read beside it: by them a target ends connections that make no progress.
//
// # Errors
//
// A breach of the protocol is a *pdu.Error, the end inside a PDU io.ErrUnexpectedEOF. [ErrClosed] says of a message
// that no byte of it was written.
package stream
