package sdk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
)

// fallen is flash whose reads panic while the test demands it.
type fallen struct {
	controller.Flash
	now *bool
}

func (f fallen) ReadAt(p []byte, off int64) (int, error) {
	if *f.now {
		panic("a bug in a drive")
	}
	return f.Flash.ReadAt(p, off)
}

// TestADriveInThisProcessThatPanics fails the command.
func TestADriveInThisProcessThatPanics(t *testing.T) {
	for _, commands := range []string{"vendor", "standard"} {
		t.Run(commands, func(t *testing.T) {
			now := false
			d, err := sdk.Create(t.Context(), "mem:?size=1MiB&commands="+commands, sdk.DeviceOptions{
				WrapFlash: func(f controller.Flash) controller.Flash { return fallen{f, &now} },
			})
			require.NoError(t, err)
			b := make([]byte, 512)
			now = true
			_, err = d.ReadAt(b, 0)
			require.ErrorIs(t, err, nvme.InternalError)
			now = false
			_, err = d.ReadAt(b, 0)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		})
	}
}
