package guest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent has the kernel kill a guest whose test process was killed: nothing outlives the tests.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// start starts the command and returns the channel of its end. The signal of endWithParent is sent when the thread that
// started the command ends, so one thread stays with it.
func start(cmd *exec.Cmd) (<-chan error, error) {
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	return exited, <-started
}
