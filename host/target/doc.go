// Package target serves a drive over NVMe/TCP, as `millrace drive serve` does: it opens the drive, listens, answers
// discovery, adds further namespaces of blocks, and injects faults where a script says so.
//
// # Overview
//
// Start takes Options and returns a Target that accepts hosts. Target.Wait returns when a listener fails, or when its
// context ends; Target.Close lets running commands complete, ends the associations and closes the drive.
// Target.SetNamespaces replaces the namespaces that the drive has beside its own while hosts are connected.
// ParseNamespaces reads their list from YAML.
//
// # All or nothing
//
// If Start fails, it leaves nothing behind: the ports are free, the drive is closed, and files that Start made are
// removed. If SetNamespaces fails, it changes nothing that a host or the file system shows: every step that can fail
// comes before the single step that replaces the namespaces, and files that SetNamespaces made are removed.
//
// # Concurrency
//
// Methods of a Target are safe for concurrent use. Target.mu guards the namespaces; SetNamespaces holds it throughout,
// so that calls replace the namespaces one after the other. The goroutines of a Target end before Close returns.
//
// # Errors
//
// An OptionError names the invalid field of Options; a ListenError names the address at which the target cannot
// listen. Errors of the drive are those of package csd.
//
// # Debugging
//
// Options.Logger receives the log of the drive, the transport and the fault injector: hosts that come and go,
// refusals, namespaces that are added and removed, each injected fault.
package target
