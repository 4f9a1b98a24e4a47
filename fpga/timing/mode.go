package timing

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
)

// Mode says which time the drives of a process take.
type Mode string

// The modes. ModeNative is that of a drive without a Pacing.
const (
	ModeNative   Mode = "native"   // as fast as the host
	ModeImage    Mode = "image"    // that of the SmartSSD's model under the active image
	ModeSmartSSD Mode = "smartssd" // that of PreSto's SmartSSD, whatever the image
	ModeU280     Mode = "u280"     // that of PreSto's U280, whatever the image
)

// ErrMode says that a mode is not one of those above.
var ErrMode = errors.New("timing")

// ParseMode reads a mode by its name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ModeNative, ModeImage, ModeSmartSSD, ModeU280:
		return m, nil
	}
	return "", fmt.Errorf("%w %q: want native, image, smartssd or u280", ErrMode, s)
}

// deviceOfImage returns the device that a drive with an active image is.
func (m Mode) deviceOfImage(active *image.Image) (Device, error) {
	switch m {
	case ModeSmartSSD:
		return SmartSSD(), nil
	case ModeU280:
		return U280(), nil
	}
	p := active.Spec.Parameters
	if p == nil {
		return Device{}, fmt.Errorf("timing: image %s states no parameters, from which its speed would follow: build it "+
			"with some, or choose smartssd or u280", active.ID.Short())
	}
	return OfImage(SmartSSD(), p), nil
}
