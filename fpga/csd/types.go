package csd

import (
	"io"

	"github.com/millrace/millrace/nvme/controller"
)

// Flash is what a drive stores its blocks in.
type Flash interface {
	controller.Flash
	io.Closer
}
