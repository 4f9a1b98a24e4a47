//go:build !unix

package source

import (
	"fmt"
	"io/fs"
)

// FileIdentity returns the identity of a file: size and the time of the last write.
func FileIdentity(info fs.FileInfo) Identity {
	return Identity{Kind: ByFile, Size: info.Size(), Value: fmt.Sprintf("%d", info.ModTime().UnixNano())}
}
