package health

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

// contents reads the volume's headers. It fails if members lie in bytes that the drive has lost, or if that cannot be
// known.
func (v *validation) contents(ctx context.Context) (string, error) {
	if v.dev.Diskless() {
		return "", skipf("%s", noFlash)
	}
	lost, err := v.dev.Lost(ctx)
	if err != nil {
		return "", err
	}
	vol, err := volume.Open(ctx, v.dev)
	if err != nil {
		if len(lost) > 0 {
			return "", fmt.Errorf("%s, and the volume cannot be read: %w", lostText(lost), err)
		}
		if errors.Is(err, volume.ErrNotTar) {
			return "", skipf("the drive holds no volume: %v", err)
		}
		return "", err
	}
	members, err := vol.List(ctx)
	if err != nil {
		return "", err
	}
	used, _ := vol.Used()
	var bad []string
	for _, m := range members {
		if m.Sparse {
			bad = append(bad, fmt.Sprintf("member %s: %v", m.Name, volume.ErrSparse))
		}
	}
	missing := damage(members, used, lost)
	bad = append(bad, missing...)
	what := fmt.Sprintf("%d members, the archive ends at byte %d", len(members), used)
	switch {
	case len(missing) > 0:
		return "", fmt.Errorf("%s: %s; bring the files from where they came from, onto a new drive or in the place "+
			"of this flash (tar -cf)", lostText(lost), strings.Join(bad, "; "))
	case len(bad) > 0:
		return "", errors.New(strings.Join(bad, "; "))
	case len(lost) > 0:
		return fmt.Sprintf("%s; %s, and nothing of it lies there: millrace drive trim settles it", what,
			lostText(lost)), nil
	}
	return what, nil
}

// damage returns what of an archive lies in lost ranges. used is the offset of the archive's end.
func damage(members []volume.Member, used int64, lost []sdk.LostRange) []string {
	const most = 10
	var list []string
	more := 0
	for _, m := range members {
		n := int64(0)
		for _, l := range lost {
			n += max(0, min(m.Offset+m.Size, l.Offset+l.Size)-max(m.Offset, l.Offset))
		}
		switch {
		case n == 0:
		case len(list) == most:
			more++
		default:
			list = append(list, fmt.Sprintf("member %s lacks %d of its %d bytes", m.Name, n, m.Size))
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("%d more members lack bytes", more))
	}
	for _, l := range lost {
		// If the two blocks of zeros that end an archive are lost, the zeros that are read there say nothing about what
		// followed.
		if l.Offset < used+archiveEnd && l.Offset+l.Size > used {
			list = append(list, fmt.Sprintf("members that lay behind byte %d are gone, and how many is not known",
				used))
			break
		}
	}
	return list
}

// lostText says which bytes are lost.
func lostText(lost []sdk.LostRange) string {
	var list []string
	for _, l := range lost {
		list = append(list, fmt.Sprintf("bytes %d to %d", l.Offset, l.Offset+l.Size))
	}
	return strings.Join(list, ", ") + " of the flash are missing and read as zeros"
}
