package node_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/host/node"
)

// A node of one drive, which serves until Close.
func ExampleStart() {
	c, err := node.ParseConfig([]byte(`
name: n0
listen: ["127.0.0.1:0"]
drives:
  - {name: d0, uri: "mem:example?size=1MiB&slm=32MiB"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := node.Start(context.Background(), c, node.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := http.Get(a.URLs()[0] + "/metrics")
	if err == nil {
		fmt.Println(resp.Status)
		err = resp.Body.Close()
	}
	fmt.Println(err, a.Drain(context.Background()), a.Close())
	// Output:
	// 200 OK
	// <nil> <nil> <nil>
}
