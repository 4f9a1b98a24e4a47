package private

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Inherited returns the connection that a process was started with, and the process at its other end, which made both
// ends. The file is closed.
func Inherited(file *os.File) (conn *net.UnixConn, parent int, err error) {
	generic, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, 0, fmt.Errorf("%w: it is started by millrace.open of the Python package, with one end of a "+
			"connected unix socket as standard input: %w", ErrNotInherited, err)
	}
	conn, ok := generic.(*net.UnixConn)
	if !ok {
		return nil, 0, errors.Join(fmt.Errorf("%w: standard input is a socket, but no unix socket", ErrNotInherited),
			generic.Close())
	}
	uid, parent, err := peerCredentials(conn)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("%w: the other end of the socket is of another user", ErrNotInherited)
	}
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, parent, nil
}

// ErrNotInherited says that a process was not started by a trainer.
var ErrNotInherited = errors.New("no trainer started this process")
