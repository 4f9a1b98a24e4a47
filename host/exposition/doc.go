// Package exposition serves /metrics. It has the metrics that every daemon exports beside its own, and the rule for
// reading metrics.
//
// # Overview
//
// [Register] adds to a registry what the program is (millrace_build_info), the state of its process and of Go's
// runtime, and when its certificates end. [Reader] is the rule for reading metrics. Over TLS, operators,
// members of the control plane and nodes may read them. Without TLS, which only loopback, unix sockets and trusted
// networks have, every client may read them.
//
// # Concurrency
//
// Everything may be used from any number of goroutines. The certificates are read again whenever metrics are collected.
//
// # Errors
//
// Register fails when the registry has another metric of one of the names.
//
// # Debugging
//
// curl --cert ann.pem --key ann.key --cacert ca.pem https://NODE:7070/metrics shows every metric with its help.
package exposition
