package deploy_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/sdk"
)

func ExampleDeployer_Run() {
	ctx := context.Background()
	dev, err := sdk.Open(ctx, "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	b, err := stock.Image()
	if err != nil {
		fmt.Println(err)
		return
	}
	d := deploy.New(deploy.Options{Image: b})
	drives := []deploy.Drive{{Name: "d0", Device: dev}}
	result, err := d.Run(ctx, drives)
	fmt.Println(result.Drives[0].Drive, result.Drives[0].State, err)
	fmt.Println(len(deploy.Drift(ctx, drives, result.Image)), "drives have drifted")
	// Output:
	// d0 current <nil>
	// 0 drives have drifted
}
