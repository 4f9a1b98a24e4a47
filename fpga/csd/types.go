package csd

import (
	"io"

	"github.com/millrace/millrace/nvme/controller"
)

// Flash stores the blocks of a drive.
type Flash interface {
	controller.Flash
	io.Closer
}
