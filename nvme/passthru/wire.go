package passthru

import (
	"encoding/binary"
	"time"

	"github.com/millrace/millrace/nvme"
)

// wire is a command as the kernel takes it: struct nvme_passthru_cmd64 of include/uapi/linux/nvme_ioctl.h, in the
// machine's byte order. Its first 72 bytes are struct nvme_uring_cmd, so that both ways share it. All reserved bytes
// and the flags are 0: the kernel refuses anything else.
type wire [wireSize]byte

// Sizes of the two structures, and where their fields lie, in bytes.
const (
	wireSize = 80
	ringSize = 72

	wireOpcode  = 0
	wireNSID    = 4
	wireCDW2    = 8
	wireCDW3    = 12
	wireAddress = 24
	wireDataLen = 36
	wireCDW10   = 40 // to 15
	wireTimeout = 64 // milliseconds, 0 for the driver's own
	wireResult  = 72
)

// request is which kernel interface takes a command.
type request int

const (
	adminRequest request = iota
	ioRequest
)

// encodeCommand writes a command for the kernel: its opcode, namespace and dwords 2, 3 and 10 to 15. The kernel fills
// in the other fields of a submission queue entry (identifier, data pointer, metadata pointer). The address of the data
// is filled in where it is pinned.
func encodeCommand(cmd *nvme.Command, dataLen int, timeout time.Duration) wire {
	var w wire
	ne := binary.NativeEndian
	w[wireOpcode] = cmd.Opcode()
	ne.PutUint32(w[wireNSID:], cmd.NSID())
	ne.PutUint32(w[wireCDW2:], cmd.DW(2))
	ne.PutUint32(w[wireCDW3:], cmd.DW(3))
	ne.PutUint32(w[wireDataLen:], uint32(dataLen))
	for i := range 6 {
		ne.PutUint32(w[wireCDW10+4*i:], cmd.DW(10+i))
	}
	ne.PutUint32(w[wireTimeout:], milliseconds(timeout))
	return w
}

// milliseconds rounds up, so that a short time does not become the driver's default.
func milliseconds(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(ms, 1<<31-1))
}

// readResult is the 64-bit result that the kernel wrote.
func (w *wire) readResult() uint64 { return binary.NativeEndian.Uint64(w[wireResult:]) }

// setResult sets the result as the kernel does.
func (w *wire) setResult(v uint64) { binary.NativeEndian.PutUint64(w[wireResult:], v) }

// setAddress writes the data's address.
func (w *wire) setAddress(a uint64) { binary.NativeEndian.PutUint64(w[wireAddress:], a) }
