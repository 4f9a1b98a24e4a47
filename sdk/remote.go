package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/tcp"
)

// openRemote opens a drive over NVMe/TCP. The drive's properties are set where it is served, so that only the command
// set can be chosen here.
func openRemote(ctx context.Context, u URI, o DeviceOptions, create bool) (*Device, error) {
	if create || u.Size != 0 || u.LBA != 0 || u.SLM != 0 || u.Threads != 0 {
		return nil, fmt.Errorf("%s: a drive over TCP is made where it is served, and of size, lba, slm, threads and "+
			"commands takes only the last: %w", u, ErrURI)
	}
	t := o.TCP
	t.Address, t.Subsystem = u.Host, u.Name
	if u.HostNQN != "" {
		t.HostNQN = u.HostNQN
	}
	t.HeaderDigest = t.HeaderDigest || u.Digests == DigestsHeader || u.Digests == DigestsBoth
	t.DataDigest = t.DataDigest || u.Digests == DigestsData || u.Digests == DigestsBoth
	for _, k := range []struct {
		path string
		into *auth.Key
	}{{u.KeyFile, &t.Key}, {u.ControllerKeyFile, &t.ControllerKey}} {
		if k.path == "" {
			continue
		}
		key, err := readKey(k.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u, err)
		}
		*k.into = key
	}
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

// maxKeyFile is the most bytes of a file that holds a key.
const maxKeyFile = 4 << 10

// readKey reads a DH-HMAC-CHAP key, in the form that nvme gen-dhchap-key prints, from a file.
func readKey(path string) (key auth.Key, err error) {
	f, err := os.Open(path)
	if err != nil {
		return key, fmt.Errorf("key: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return key, fmt.Errorf("key: %w", err)
	}
	if key, err = auth.ParseKey(strings.TrimSpace(string(b))); err != nil {
		return key, fmt.Errorf("key in %s: %w", path, err)
	}
	return key, nil
}
