//go:build !unix

package csd

import (
	"errors"
	"os"
)

func lockFile(*os.File) error {
	return errors.New("lock: drives in files need a Unix system, to keep a second opener out")
}
