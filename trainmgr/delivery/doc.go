// Package delivery delivers one epoch of a job: it takes pieces from the job's source, puts what they bring into the
// input queue, and delivers no mini-batch twice.
//
// # Overview
//
//	settled, err := epoch.Settled()
//	d, err := delivery.New(ctx, epoch, settled, options) // begins to hand out pieces
//	d.Start()
//	mb, makers, err := d.Next(ctx)                       // until io.EOF
//	d.Stop()
//
// A [Delivery] takes each [Piece] in a goroutine and checks what it brings against the plan. Pieces bring fragments. A
// fragment that is a whole mini-batch goes into the input queue, and the joiner keeps every other one until the last
// fragment of its mini-batch has come. The source sees the epoch through a [View]: what has still to come, and the room
// in the queue.
//
// # Concurrency
//
// The methods of a Delivery may be called from any goroutine, Start and Stop from one. All its goroutines end before
// Stop returns.
//
// # Errors
//
// Next returns the first error that ended the delivery. Errors of a piece name the drive, and the split or the
// partition.
package delivery
