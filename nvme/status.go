package nvme

import "fmt"

// Status is the status field of a completion without its phase tag, as the Linux passthrough ioctls return it:
// bits 7:0 status code, 10:8 status code type, 12:11 command retry delay, 13 more, 14 do not retry.
// The zero Status is success. Status implements error; errors.Is compares type and code only, so that a status with
// the do-not-retry bit matches the plain constant.
type Status uint16

// Bits of a Status beside type and code.
const (
	StatusMore Status = 1 << 13 // the error information log has an entry for this command
	StatusDNR  Status = 1 << 14 // do not retry: the same command to any controller of the subsystem fails again
	codeMask   Status = 0x7ff
)

// Status code types (NVM Express Base Specification 2.x, section 4.2.3).
const (
	TypeGeneric         = 0
	TypeCommandSpecific = 1
	TypeMedia           = 2
	TypePath            = 3
	TypeVendor          = 7
)

// Generic command status values.
const (
	Success                     Status = 0x000
	InvalidOpcode               Status = 0x001
	InvalidField                Status = 0x002
	CommandIDConflict           Status = 0x003
	DataTransferError           Status = 0x004
	PowerLossAbort              Status = 0x005
	InternalError               Status = 0x006
	CommandAborted              Status = 0x007 // Command Abort Requested
	QueueDeleted                Status = 0x008 // Command Aborted due to SQ Deletion
	InvalidNamespace            Status = 0x00b // Invalid Namespace or Format
	CommandSequenceError        Status = 0x00c
	InvalidSGLSegmentDescriptor Status = 0x00d
	InvalidSGLCount             Status = 0x00e
	InvalidSGLLength            Status = 0x00f // Data SGL Length Invalid
	InvalidSGLType              Status = 0x011 // SGL Descriptor Type Invalid
	OperationDenied             Status = 0x015
	InvalidSGLOffset            Status = 0x016
	HostIDInconsistent          Status = 0x018
	KeepAliveExpired            Status = 0x019
	KeepAliveInvalid            Status = 0x01a // Keep Alive Timeout Invalid
	WriteProtected              Status = 0x020 // Namespace is Write Protected
	CommandInterrupted          Status = 0x021
	TransientTransportError     Status = 0x022
	LBAOutOfRange               Status = 0x080
	CapacityExceeded            Status = 0x081
	NamespaceNotReady           Status = 0x082
)

// Command specific status values. 85h to 9Bh are those of Subsystem Local Memory and Computational Programs
// (Base Specification 2.2, figure 104).
const (
	InvalidQueueID            Status = 0x101
	InvalidQueueSize          Status = 0x102
	AbortLimitExceeded        Status = 0x103
	AsyncEventLimitExceeded   Status = 0x105
	InvalidLogPage            Status = 0x109
	FeatureNotSaveable        Status = 0x10d
	FeatureNotChangeable      Status = 0x10e
	FeatureNotNamespaced      Status = 0x10f
	CommandSetNotSupported    Status = 0x129
	CommandSetRejected        Status = 0x12b // I/O Command Set Combination Rejected
	InvalidCommandSet         Status = 0x12c
	ConflictingAttributes     Status = 0x180
	SizeLimitExceeded         Status = 0x183 // Command Size Limit Exceeded
	IncompatibleNamespace     Status = 0x185
	FastCopyNotPossible       Status = 0x186
	OverlappingIORange        Status = 0x187
	NamespaceNotReachable     Status = 0x188
	InsufficientResources     Status = 0x189
	InsufficientProgramSpace  Status = 0x18a // Insufficient Program Resources
	InvalidMemoryNamespace    Status = 0x18b
	InvalidMemoryRangeSet     Status = 0x18c
	InvalidMemoryRangeSetID   Status = 0x18d
	InvalidProgramData        Status = 0x18e
	InvalidProgramIndex       Status = 0x18f
	InvalidProgramType        Status = 0x190
	MemoryRangesExceeded      Status = 0x191
	MemoryRangeSetsExceeded   Status = 0x192
	ProgramsActivatedExceeded Status = 0x193
	ProgramBytesExceeded      Status = 0x194
	MemoryRangeSetInUse       Status = 0x195
	NoProgram                 Status = 0x196
	OverlappingMemoryRanges   Status = 0x197
	ProgramNotActivated       Status = 0x198
	ProgramInUse              Status = 0x199
	ProgramNotDownloadable    Status = 0x19a
	ProgramTooBig             Status = 0x19b
)

// Media and data integrity errors.
const (
	WriteFault           Status = 0x280
	UnrecoveredReadError Status = 0x281
	CompareFailure       Status = 0x285
	AccessDenied         Status = 0x286
)

var statusNames = map[Status]string{
	Success: "success", InvalidOpcode: "invalid opcode", InvalidField: "invalid field in command",
	CommandIDConflict: "command identifier conflict", DataTransferError: "data transfer error",
	PowerLossAbort: "aborted by power loss", InternalError: "internal error", CommandAborted: "command abort requested",
	QueueDeleted: "aborted by submission queue deletion", InvalidNamespace: "invalid namespace or format",
	CommandSequenceError: "command sequence error", InvalidSGLSegmentDescriptor: "invalid SGL segment descriptor",
	InvalidSGLCount: "invalid number of SGL descriptors", InvalidSGLLength: "data SGL length invalid",
	InvalidSGLType: "SGL descriptor type invalid", OperationDenied: "operation denied",
	InvalidSGLOffset: "SGL offset invalid", HostIDInconsistent: "host identifier inconsistent format",
	KeepAliveExpired: "keep alive timer expired", KeepAliveInvalid: "keep alive timeout invalid",
	WriteProtected: "namespace is write protected", CommandInterrupted: "command interrupted",
	TransientTransportError: "transient transport error", LBAOutOfRange: "address out of range",
	CapacityExceeded: "capacity exceeded", NamespaceNotReady: "namespace not ready",

	InvalidQueueID: "invalid queue identifier", InvalidQueueSize: "invalid queue size",
	AbortLimitExceeded:      "abort command limit exceeded",
	AsyncEventLimitExceeded: "asynchronous event request limit exceeded",
	InvalidLogPage:          "invalid log page", FeatureNotSaveable: "feature identifier not saveable",
	FeatureNotChangeable: "feature not changeable", FeatureNotNamespaced: "feature not namespace specific",
	CommandSetNotSupported: "I/O command set not supported", CommandSetRejected: "I/O command set combination rejected",
	InvalidCommandSet: "invalid I/O command set", ConflictingAttributes: "conflicting attributes",
	SizeLimitExceeded: "command size limit exceeded", IncompatibleNamespace: "incompatible namespace or format",
	FastCopyNotPossible: "fast copy not possible", OverlappingIORange: "overlapping I/O range",
	NamespaceNotReachable: "namespace not reachable", InsufficientResources: "insufficient resources",
	InsufficientProgramSpace: "insufficient program resources", InvalidMemoryNamespace: "invalid memory namespace",
	InvalidMemoryRangeSet: "invalid memory range set", InvalidMemoryRangeSetID: "invalid memory range set identifier",
	InvalidProgramData: "invalid program data", InvalidProgramIndex: "invalid program index",
	InvalidProgramType: "invalid program type", MemoryRangesExceeded: "maximum memory ranges exceeded",
	MemoryRangeSetsExceeded: "maximum memory range sets exceeded", ProgramsActivatedExceeded: "maximum programs activated",
	ProgramBytesExceeded: "maximum program bytes exceeded", MemoryRangeSetInUse: "memory range set in use",
	NoProgram: "no program", OverlappingMemoryRanges: "overlapping memory ranges",
	ProgramNotActivated: "program not activated", ProgramInUse: "program in use",
	ProgramNotDownloadable: "program index not downloadable", ProgramTooBig: "program too big",

	WriteFault: "write fault", UnrecoveredReadError: "unrecovered read error", CompareFailure: "compare failure",
	AccessDenied: "access denied",
}

// retryHelps lists the statuses that describe a moment rather than the command: the same command may succeed later.
var retryHelps = map[Status]bool{
	CommandIDConflict: true, DataTransferError: true, PowerLossAbort: true, InternalError: true, CommandAborted: true,
	QueueDeleted: true, KeepAliveExpired: true, CommandInterrupted: true, TransientTransportError: true,
	NamespaceNotReady: true, AbortLimitExceeded: true, AsyncEventLimitExceeded: true, InsufficientResources: true,
	InsufficientProgramSpace: true, MemoryRangeSetsExceeded: true, ProgramsActivatedExceeded: true,
	MemoryRangeSetInUse: true, ProgramInUse: true, NoProgram: true, ProgramNotActivated: true,
	WriteFault: true, UnrecoveredReadError: true,
}

// Code is the status without retry delay, more and do-not-retry bits: what the constants hold.
func (s Status) Code() Status { return s & codeMask }

// Type is the status code type, 0 to 7.
func (s Status) Type() int { return int(s>>8) & 7 }

// OK reports whether the command succeeded.
func (s Status) OK() bool { return s.Code() == Success }

// DNR reports whether the do-not-retry bit is set.
func (s Status) DNR() bool { return s&StatusDNR != 0 }

// More reports whether the error information log holds more about the failure.
func (s Status) More() bool { return s&StatusMore != 0 }

// Final sets the do-not-retry bit where the specification's meaning of the code says that a retry cannot help, and
// leaves a success, a transient failure, and a path or vendor status as it is. A controller applies it once, to every
// completion.
func (s Status) Final() Status {
	if t := s.Type(); s.OK() || t == TypePath || t == TypeVendor || retryHelps[s.Code()] {
		return s
	}
	return s | StatusDNR
}

// Err is nil for success and the status itself otherwise.
func (s Status) Err() error {
	if s.OK() {
		return nil
	}
	return s
}

// Is makes errors.Is compare type and code, and ignore the other bits.
func (s Status) Is(target error) bool {
	t, ok := target.(Status)
	return ok && t.Code() == s.Code()
}

// Error implements error.
func (s Status) Error() string { return "nvme status: " + s.String() }

// String names the status, with its type and code in hexadecimal: "invalid field in command (0/02h, do not retry)".
func (s Status) String() string {
	name, ok := statusNames[s.Code()]
	if !ok {
		name = "unknown status"
		if s.Type() == TypeVendor {
			name = "vendor specific status"
		}
	}
	retry := ""
	if s.DNR() {
		retry = ", do not retry"
	}
	return fmt.Sprintf("%s (%d/%02xh%s)", name, s.Type(), uint16(s)&0xff, retry)
}
