package nvme

// Identify builds an Identify of the given structure. csi counts only for structures of a command set.
func Identify(cns uint8, nsid uint32, csi uint8) Command {
	c := New(AdminIdentify, nsid)
	c.SetDW(10, uint32(cns))
	c.SetDW(11, uint32(csi)<<24)
	c.SetData(IdentifySize)
	return c
}

// GetLog builds a Get Log Page for n bytes (a multiple of 4, above 0) from byte offset off (a multiple of 4) of log
// lid.
func GetLog(lid uint8, nsid uint32, off uint64, n uint32) Command {
	c := New(AdminGetLogPage, nsid)
	numd := n/4 - 1
	c.SetDW(10, uint32(lid)|numd<<16)
	c.SetDW(11, numd>>16)
	c.SetQW(12, off)
	c.SetData(n)
	return c
}

// SetFeature builds a Set Features that carries its value in dword 11.
func SetFeature(fid uint8, value uint32) Command {
	c := New(AdminSetFeatures, 0)
	c.SetDW(10, uint32(fid))
	c.SetDW(11, value)
	return c
}

// GetFeature builds a Get Features of the current value, answered in the completion.
func GetFeature(fid uint8) Command {
	c := New(AdminGetFeatures, 0)
	c.SetDW(10, uint32(fid))
	return c
}

// Abort builds an Abort of command cid of queue sqid.
func Abort(sqid, cid uint16) Command {
	c := New(AdminAbort, 0)
	c.SetDW(10, uint32(sqid)|uint32(cid)<<16)
	return c
}

// KeepAlive builds a Keep Alive.
func KeepAlive() Command { return New(AdminKeepAlive, 0) }

// AsyncEventRequest builds an Asynchronous Event Request.
func AsyncEventRequest() Command { return New(AdminAsyncEventRequest, 0) }

// AsyncEvent is an event, as the completion of an Asynchronous Event Request names it.
type AsyncEvent struct {
	Type uint8 // 0 error, 1 SMART and health, 2 notice, 7 vendor
	Info uint8
	Log  uint8 // the log page with details; reading it re-arms the event
}

// The events that a controller here reports.
var (
	EventReliability      = AsyncEvent{1, 0x00, LogSMART}
	EventTemperature      = AsyncEvent{1, 0x01, LogSMART}
	EventSpare            = AsyncEvent{1, 0x02, LogSMART}
	EventNamespaceChanged = AsyncEvent{2, 0x00, LogChangedNamespaces}
	EventFirmware         = AsyncEvent{2, 0x01, LogFirmware} // firmware activation starting
)

// Word is dword 0 of the completion.
func (e AsyncEvent) Word() uint32 { return uint32(e.Type&7) | uint32(e.Info)<<8 | uint32(e.Log)<<16 }

// ParseAsyncEvent reads dword 0 of an Asynchronous Event Request's completion.
func ParseAsyncEvent(dw0 uint32) AsyncEvent {
	return AsyncEvent{uint8(dw0 & 7), uint8(dw0 >> 8), uint8(dw0 >> 16)}
}
