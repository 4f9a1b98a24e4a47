// Package exposition is what every daemon exports at /metrics beside its own metrics, and who may read it.
//
// # Overview
//
// [Register] adds to a registry what the program is (millrace_build_info), its process and Go's runtime, and when its
// certificates end. [Reader] is the one rule of who may read metrics: over TLS operators, members of the control plane
// and nodes; without TLS, which only loopback, unix sockets and trusted networks have, whoever gets there.
//
// # Concurrency
//
// Everything may be used from any number of goroutines. Certificates are read again whenever metrics are.
//
// # Errors
//
// Errors are the registry's: a metric of a name that is there already.
//
// # Debugging
//
// curl --cert ann.pem --key ann.key --cacert ca.pem https://NODE:7070/metrics shows everything, with what it means.
package exposition
