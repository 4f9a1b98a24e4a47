package control_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/millrace/millrace/control"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// One member with its etcd, on this machine: a launcher or a tool calls it by Connect.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	data, err := os.MkdirTemp("", "control")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(data) }()
	member, err := control.Start(ctx, control.Options{Data: data, Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = member.Close() }()
	if err := member.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	client := apiv1connect.NewControlClient(http.DefaultClient, member.URL())
	jobs, err := client.ListJobs(ctx, &apiv1.ListJobsRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(jobs.Jobs), "jobs")
	// Output: 0 jobs
}
