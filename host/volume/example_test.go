package volume_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

func ExampleVolume_Put() {
	ctx := context.Background()
	d, err := sdk.Open(ctx, "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	v, err := volume.Open(ctx, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := v.Put(ctx, "day-0.tsv", 6, strings.NewReader("1\t2\t3\n")); err != nil {
		fmt.Println(err)
		return
	}
	members, err := v.List(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(members[0].Name, "at byte", members[0].Offset, "of", members[0].Size)
	// Output: day-0.tsv at byte 512 of 6
}
