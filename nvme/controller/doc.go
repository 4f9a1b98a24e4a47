// Package controller is an NVMe controller: admin and I/O commands over namespaces and a compute interface.
package controller
