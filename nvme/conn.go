package nvme

import (
	"context"
	"errors"
)

// ErrClosed is returned for a command on a Conn that was closed.
var ErrClosed = errors.New("the association is closed")

// Conn is a host's association with one controller. Methods are safe for concurrent use. A call returns when its
// command has completed; until then data belongs to the drive. data is the command's buffer, in the direction of the
// low two bits of the opcode (01b host to controller, 10b controller to host); its length is the length in the
// command's data descriptor. The connection chooses the command identifier, in a copy of the command.
//
// A non-nil error is a failure of the transport, ErrClosed, ctx's end, or a Status that is not success (errors.As).
// Implementations: controller.Local in process; transports over a wire or a kernel driver.
type Conn interface {
	// Admin submits to the admin queue. It never waits behind I/O or computation.
	Admin(ctx context.Context, cmd *Command, data []byte) (Completion, error)
	// IO submits to an I/O queue, waiting for room in it.
	IO(ctx context.Context, cmd *Command, data []byte) (Completion, error)
	// Close ends the association: it waits for the commands that run, and the drive frees the association's resources.
	Close() error
}

// Mapper is implemented by a Conn whose drive maps its memory into the host's address space, as a PCIe BAR does.
type Mapper interface {
	// MapSLM returns bytes [off, off+n) of subsystem local memory, not a copy, and whether the association holds all
	// of the range. The view is valid while it holds the range. Reads through it are no commands, so no counter sees them.
	MapSLM(off, n uint64) ([]byte, bool)
}

// Limiter is implemented by a Conn whose way to the drive carries less in one command than the drive may take.
type Limiter interface {
	// MaxTransfer is the most bytes of one command's data.
	MaxTransfer() int
}

// Lasting is implemented by a Conn whose association continues after Close, as that of an operating system's driver
// does. The host itself gives back what it reserved in such an association.
type Lasting interface {
	// Lasts reports whether the association outlives the Conn.
	Lasts() bool
}

// Associated is implemented by a Conn that makes a new association when one is lost. The drive's memory that the lost
// association held is gone, and its addresses may mean something else in the next one: a host that holds memory of
// the drive sends its commands over InAssociation's Conn.
type Associated interface {
	// Association returns the number, from 1 up, of the association that commands go to. It waits while there is none.
	Association(ctx context.Context) (uint64, error)
	// InAssociation returns a Conn whose commands go to association n. Once that association is over, they fail instead
	// of going to the next one. Closing this Conn does nothing.
	InAssociation(n uint64) Conn
}
