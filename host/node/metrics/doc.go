// Package metrics exports what a storage node counts and knows, for Prometheus.
//
// # Overview
//
// A [Metrics] counts the mini-batches that the node delivers (it is package delivery's Counter), and collects, when it
// is asked, the node's status, what the drives' SMART logs say, and how long the kernel's NVMe commands take. It
// registers what every daemon exports as well (package exposition). The names begin with millrace_node_ for the node,
// millrace_device_ for a drive and millrace_nvme_ for commands; docs/operations.md explains those that alerts use.
//
// # Concurrency
//
// A Metrics is safe for concurrent use. Close it when nothing delivers any more.
//
// # Errors
//
// [New] fails when the registry has another metric of one of the names. A status that cannot be read is an invalid
// metric of the scrape.
//
// # Debugging
//
// curl URL/metrics
package metrics
