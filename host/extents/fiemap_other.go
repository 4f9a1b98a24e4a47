//go:build !linux

package extents

import (
	"io/fs"
	"os"
)

func fiemap(*os.File) ([]rawExtent, error) { return nil, ErrUnsupported }

func checkFileSystem(*os.File) error { return ErrUnsupported }

func identity(fs.FileInfo) (device, inode uint64, major, minor uint32, err error) {
	return 0, 0, 0, 0, ErrUnsupported
}
