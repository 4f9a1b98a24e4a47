package private

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerCredentials returns the user and the process at the other end of a unix socket.
func peerCredentials(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("who is connected: %w", err)
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if controlErr != nil {
		err = controlErr
	}
	if err != nil {
		return 0, 0, fmt.Errorf("who is connected: %w", err)
	}
	return int(credentials.Uid), int(credentials.Pid), nil
}

// awaitProcessEnd waits until a process has ended or ctx is done, and reports whether the process has ended. For a
// process that cannot be watched it waits until ctx is done.
func awaitProcessEnd(ctx context.Context, pid int) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return true
		}
		<-ctx.Done()
		return false
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer file.Close()
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(past) })
	defer stop()
	raw, err := file.SyscallConn()
	if err != nil {
		<-ctx.Done()
		return false
	}
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(list, 0)
		ended = err == nil && n == 1
		return ended
	})
	if err != nil {
		<-ctx.Done()
	}
	return ended
}

// descriptorMessage returns the control message that passes a file's descriptor.
func descriptorMessage(file *os.File) []byte { return syscall.UnixRights(int(file.Fd())) }
