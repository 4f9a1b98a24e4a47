// Package metrics exports the counters and the state of a storage node, for Prometheus.
//
// # Overview
//
// A [Metrics] counts the mini-batches that the node delivers (it is package delivery's Counter), and collects, with
// every scrape, the node's status, the values of the drives' SMART logs, and how long the kernel's NVMe commands
// take. It also registers the metrics that every daemon exports (package exposition). The names begin with
// millrace_node_ for the node, millrace_device_ for a drive and millrace_nvme_ for commands; docs/operations.md
// explains those that alerts use.
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
