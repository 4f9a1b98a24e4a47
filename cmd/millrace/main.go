// Millrace preprocesses a recommender's training rows on the drives that store them.
//
//	millrace demo                         the main job, on this machine, nothing else installed
//	millrace dataset generate|import|inspect
//	millrace preprocess --pipeline P --in FILE... --out DIR
//	millrace drive create|put|ls|list|info
//	millrace train                        a job with a stand-in trainer: T, P, T/P, queue depth, stalls
//	millrace plan                         drives, watts and dollars, and which constraint binds
//	millrace bench rm                     RM1 to RM5, measured here
//
// Every command has --help with an example and --output table|json. Exit status: 0 done, 1 failed, 2 wrong flags or
// arguments.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}
