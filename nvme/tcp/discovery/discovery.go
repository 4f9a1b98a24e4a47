// Package discovery asks a discovery controller where subsystems can be reached over NVMe/TCP.
package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
)

// Limits of reading a discovery log.
const (
	chunkBytes  = 4 << 10
	mostEntries = 4096 // more than anybody has: what a target promises is not believed
	tries       = 5    // a log that changes while it is read is read again
)

// Discover asks the discovery subsystem at o.Address where subsystems can be reached. o.Subsystem may be empty: the
// well-known one. The association ends before Discover returns.
func Discover(ctx context.Context, o tcp.DialOptions) (entries []fabrics.Entry, err error) {
	if o.Subsystem == "" {
		o.Subsystem = fabrics.DiscoveryNQN
	}
	h, err := tcp.Dial(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	for range tries {
		log, whole, err := readLog(ctx, h)
		if err != nil {
			return nil, fmt.Errorf("discover: %w", err)
		}
		if whole {
			return log.Entries, nil
		}
	}
	return nil, fmt.Errorf("discover: the log of %s changed each of %d times while it was read", o.Address, tries)
}

// readLog reads log page 70h, and reports whether it stayed the same meanwhile.
func readLog(ctx context.Context, h *tcp.Host) (log fabrics.DiscoveryLog, whole bool, err error) {
	page := make([]byte, fabrics.DiscoveryHeaderSize)
	get := func(b []byte, off uint64) error {
		cmd := nvme.GetLog(fabrics.LogDiscovery, 0, off, uint32(len(b)))
		_, err := h.Admin(ctx, &cmd, b)
		return err
	}
	if err := get(page, 0); err != nil {
		return log, false, err
	}
	n := binary.LittleEndian.Uint64(page[8:])
	if n > mostEntries {
		return log, false, fmt.Errorf("the log promises %d entries: at most %d are read", n, mostEntries)
	}
	for end := fabrics.DiscoveryHeaderSize + int(n)*fabrics.DiscoveryEntrySize; len(page) < end; {
		at := len(page)
		page = append(page, make([]byte, min(chunkBytes, end-at))...)
		if err := get(page[at:], uint64(at)); err != nil {
			return log, false, err
		}
	}
	if err := log.Unmarshal(page); err != nil {
		return log, false, err
	}
	again := make([]byte, fabrics.DiscoveryHeaderSize)
	if err := get(again, 0); err != nil {
		return log, false, err
	}
	var now fabrics.DiscoveryLog
	if err := now.Unmarshal(again); err != nil {
		return log, false, err
	}
	return log, now.Generation == log.Generation, nil
}
