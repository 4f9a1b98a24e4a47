// Millrace preprocesses a recommender's training rows on the drives that store them.
//
//	millrace demo                         the main job, on this machine, nothing else installed
//	millrace up                           a control plane and a storage node on this machine
//	millrace down                         their end
//	millrace dataset ...                  RM1 to RM5 as Parquet; Criteo rows or Parquet in; where partitions lie
//	millrace pipeline ...                 pipelines: draft one from what files hold, check one
//	millrace vocabulary ...               vocabularies: build one of a data set, extend, show and compare them
//	millrace operator ...                 operators of one's own: test the functions of a WebAssembly module
//	millrace preprocess                   a pipeline over files or a drive's members, to npy or Arrow
//	millrace private                      the preprocessing of one trainer in Python, which starts it by itself
//	millrace drive ...                    drives by URI, their health, and the files on them
//	millrace image ...                    images: build, sign, load, activate, roll back
//	millrace train                        a job with a stand-in trainer: T, P, T/P, queue depth, stalls
//	millrace plan                         drives, watts and dollars, and which constraint binds
//	millrace bench ...                    RM1 to RM5, measured here
//	millrace pki ...                      identities for mutual TLS between hosts
//	millrace node ...                     a storage node
//	millrace worker ...                   a worker without data
//	millrace config ...                   check a daemon's configuration, or print its defaults
//	millrace control ...                  the control plane: leader, ledger, jobs
//	millrace context ...                  control planes by name: address and certificate in one word
//	millrace jobs ...                     jobs of a control plane
//	millrace nodes ...                    storage nodes that a control plane knows
//	millrace completion                   a shell's completion script
//	millrace version                      what this binary is
//
// Every command has --help with an example, --output table|json and --progress auto|plain|json|none. Results go to
// stdout, progress and errors to stderr; an error is one line. Exit status: 0 done, 1 failed, 2 wrong flags or
// arguments, 141 nobody reads its output any more. docs/commands.md lists every command and flag.
package main

import (
	"os"

	"github.com/millrace/millrace/cmd/cli"
)

func main() { os.Exit(cli.Main(run)) }
