// Package passthru talks to a drive behind the Linux kernel's NVMe driver, local or over fabrics. Like the other
// transports it implements [nvme.Conn].
//
// # Overview
//
// [Open] takes the controller's device, /dev/nvme0. Its namespaces are found through sysfs, by their own words: device
// names follow neither the namespace identifier nor the controller's. Admin commands go to the controller's device, I/O
// commands to the generic device (/dev/ng0n1) of the namespace that the command names, so the kernel needs no driver
// for the command sets of computation. Under a kernel that has no generic devices the namespace's block device takes
// them.
//
// A command goes through io_uring if a probe at Open shows that the kernel supports NVMe commands there (one ring for
// each connection, owned by one goroutine), else through a 64-bit ioctl, which occupies a thread while it runs.
// Conn.Carrier returns which, and why. The data pointer of the command is not sent: the kernel writes its own.
//
// [Controllers] lists the kernel's controllers. [Reset] resets a controller.
//
// # What the kernel decides
//
//   - The association is the kernel's and outlives the Conn. Processes that use one device share it, and so
//     share the local memory that it holds. Memory that a process held when it died is free again after [Reset], or
//     when the kernel disconnects.
//   - Of a subsystem that the kernel reaches by several controllers (native multipath) it chooses the path of every I/O
//     command. Controller.Paths counts them. Local memory belongs to one association, so computing wants one path.
//   - One command carries at most Conn.MaxTransfer bytes, which can be less than the drive's MDTS.
//   - A running command cannot be called back. The end of a context ends waiting for room and for a controller that
//     reconnects; a command that runs is waited for. A drive that never answers is the kernel's timer's to deal with
//     (Options.Timeout): it resets the whole controller, under every command that runs there.
//
// # Concurrency
//
// A Conn is safe for concurrent use. Close waits for the commands that run. A caller's buffer that begins at a multiple
// of 4 KiB is given to the kernel as it is, pinned while the command runs; any other goes through an aligned buffer of
// the Conn's.
//
// # Errors
//
// The drive's answer is an [nvme.Status]; the kernel returns it as a positive number, which is never taken for success.
// While a controller reconnects, commands that were not sent are tried again for Options.Reconnect, and so are
// interrupted commands that may be repeated; other interrupted commands end with [ErrReset]. The other errors are
// [ErrNotFound], [ErrNoNamespace], [ErrUnsupported], and errors that wrap the kernel's errno.
//
// # Debugging
//
// Conn.Carrier and Conn.Controller name the carrier and the controller that Open found. The kernel's log names resets
// and commands that it refused; its tracepoints nvme_setup_cmd and nvme_complete_rq show every command.
package passthru
