package guest

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// The kernel's initramfs format (Documentation/driver-api/early-userspace/buffer-format.rst): "new ASCII" cpio entries,
// whose header is thirteen numbers of eight hexadecimal digits after the magic, name and data each padded to 4 bytes.
const (
	cpioMagic   = "070701"
	cpioTrailer = "TRAILER!!!"
	cpioAlign   = 4

	modeDir  = 0o040000
	modeFile = 0o100000
)

// archive writes an initramfs. Folders come before what lies in them, once each. The first error sticks.
type archive struct {
	w       io.Writer
	written int64
	inode   uint32
	folders map[string]bool
	err     error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: w, folders: map[string]bool{"": true}}
}

// dir adds the folder and those above it.
func (a *archive) dir(name string) {
	name = strings.Trim(path.Clean("/"+name), "/")
	if a.folders[name] {
		return
	}
	a.folders[name] = true
	a.parent(name)
	a.entry(name, modeDir|0o755, nil)
}

// file adds a file that anyone may run.
func (a *archive) file(name string, data []byte) {
	name = strings.Trim(path.Clean("/"+name), "/")
	a.parent(name)
	a.entry(name, modeFile|0o755, data)
}

func (a *archive) parent(name string) {
	if up := path.Dir(name); up != "." {
		a.dir(up)
	}
}

// Close writes the trailer and returns the first error. It does not close the writer.
func (a *archive) Close() error {
	a.entry(cpioTrailer, 0, nil)
	return a.err
}

func (a *archive) entry(name string, mode uint32, data []byte) {
	if a.err == nil && int64(len(data)) > 1<<32-1 {
		a.err = fmt.Errorf("add %s to the initramfs: %d bytes do not fit an entry", name, len(data))
	}
	if a.err != nil {
		return
	}
	inode := a.inode
	if name == cpioTrailer {
		inode = 0
	}
	a.inode++
	header := cpioMagic
	for _, field := range []uint32{
		inode, mode, 0, 0, 1, 0, // inode, mode, uid, gid, links, time
		uint32(len(data)), 0, 0, 0, 0, // size, device and rdevice as major, minor
		uint32(len(name) + 1), 0, // name with its NUL, checksum
	} {
		header += fmt.Sprintf("%08X", field)
	}
	a.write([]byte(header + name + "\x00"))
	a.pad()
	a.write(data)
	a.pad()
}

func (a *archive) pad() {
	if over := a.written % cpioAlign; over != 0 {
		a.write(make([]byte, cpioAlign-over))
	}
}

func (a *archive) write(b []byte) {
	if a.err != nil {
		return
	}
	n, err := a.w.Write(b)
	a.written += int64(n)
	a.err = err
}
