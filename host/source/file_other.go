//go:build !unix

package source

import (
	"fmt"
	"os"
)

// fileIdentity returns the identity of an open file: size and the time of the last write.
func fileIdentity(f *os.File) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, err
	}
	return Identity{Kind: ByFile, Size: info.Size(), Value: fmt.Sprintf("%d", info.ModTime().UnixNano())}, nil
}
