package sdk_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/sdk"
)

func ExampleOpen() {
	ctx := context.Background()
	d, err := sdk.Open(ctx, "mem:?size=16MiB&slm=1MiB", sdk.DeviceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	slm, err := d.ReserveSLM(ctx, 4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := slm.Store(ctx, 100, []byte("beside the flash")); err != nil {
		fmt.Println(err)
		return
	}
	view, mapped := slm.View(100, 16)
	fmt.Printf("%s %t\n", view, mapped)
	// Output: beside the flash true
}
