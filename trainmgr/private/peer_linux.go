package private

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
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

// findOtherListener returns the name of a socket at which another process of this user listens for the ranks that name
// is for: the name up to its last hyphen.
func findOtherListener(name string) (other string, found bool) {
	own := "@" + name
	shared := own[:strings.LastIndexByte(own, '-')+1]
	sockets, _ := os.ReadFile("/proc/net/unix") // where it is not there, the ranks that nobody serves say what is wrong
	for line := range strings.Lines(string(sockets)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || shared == "" {
			continue
		}
		other = fields[len(fields)-1]
		if other != own && strings.HasPrefix(other, shared) && isOwnListener(other) {
			return other, true
		}
	}
	return "", false
}

// isOwnListener reports whether a process of this user listens at a name. It does not wait: a full queue is an error.
func isOwnListener(name string) bool {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: name})
	if err != nil {
		return false
	}
	defer conn.Close()
	uid, _, err := peerCredentials(conn)
	return err == nil && uid == os.Getuid()
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
