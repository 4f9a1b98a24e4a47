package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

// pathEscape makes a path part of a URI.
var pathEscape = strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23")

// MakeDrive makes a drive whose flash is a file that is just large enough, puts the files on it, and returns its URI.
// stored, if not nil, is called with the bytes of each file that was put on the drive.
func MakeDrive(ctx context.Context, path string, files []File, stored func(bytes int64)) (string, error) {
	const block, margin = 4096, 1 << 20
	size := int64(margin)
	for _, f := range files {
		size += f.Bytes + 64<<10 // headers and padding
	}
	uri := "file:" + pathEscape.Replace(path)
	device, err := sdk.Create(ctx, fmt.Sprintf("%s?size=%dB&lba=%d", uri, (size+block-1)/block*block, block),
		sdk.DeviceOptions{})
	if err != nil {
		return "", err
	}
	return uri, errors.Join(putFiles(ctx, device, files, stored), device.Close())
}

// putFiles puts files on a new drive.
func putFiles(ctx context.Context, device *sdk.Device, files []File, stored func(bytes int64)) error {
	v, err := volume.Open(ctx, device)
	if err != nil {
		return err
	}
	for i := range files {
		f, err := os.Open(files[i].Path)
		if err != nil {
			return err
		}
		err = v.Put(ctx, filepath.Base(files[i].Path), files[i].Bytes, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("put %s: %w", files[i].Path, err)
		}
		if stored != nil {
			stored(files[i].Bytes)
		}
	}
	return nil
}
