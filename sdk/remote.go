package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme/tcp"
)

// openRemote opens a drive over NVMe/TCP. It is what it is there: nothing of it can be chosen here but the command set.
func openRemote(ctx context.Context, u URI, o DeviceOptions, create bool) (*Device, error) {
	if create || u.Size != 0 || u.LBA != 0 || u.SLM != 0 || u.Threads != 0 {
		return nil, fmt.Errorf("%s: a drive over TCP is made where it is served, and of size, lba, slm, threads and commands takes only the last: %w", u, ErrURI)
	}
	t := o.TCP
	t.Address, t.Subsystem = u.Host, u.Name
	if u.HostNQN != "" {
		t.HostNQN = u.HostNQN
	}
	t.HeaderDigest = t.HeaderDigest || u.Digests == DigestsHeader || u.Digests == DigestsBoth
	t.DataDigest = t.DataDigest || u.Digests == DigestsData || u.Digests == DigestsBoth
	if t.HostID == [16]byte{} {
		t.HostID = o.HostID
	}
	if t.Logger == nil {
		t.Logger = o.Logger
	}
	conn, err := tcp.Dial(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	dev, err := NewDevice(ctx, u.String(), conn, u.Commands, o)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return dev, nil
}
