package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FindProgram returns the path of a program that is installed with this one: in the same folder, or else on the PATH.
// With the error it returns the name.
func FindProgram(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return name, fmt.Errorf("find this program: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if found, err := exec.LookPath(beside); err == nil {
		return found, nil
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return name, fmt.Errorf("the program %s is not in the folder %s, where this program is, and not on the PATH: "+
			"`make build` makes both, and the Debian package, the archive of a release and the container image have both",
			name, filepath.Dir(self))
	}
	return found, nil
}
