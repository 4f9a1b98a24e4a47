// Package site sets up a whole cluster on one machine and takes it down again: an authority with certificates, a
// control plane, a storage node with a drive, and the context by which commands find them. `millrace up` and `millrace
// down` are this package.
//
// # Overview
//
// A [Site] is a folder. [Open] makes it or finds it, and refuses a folder that it did not make: the record up.json says
// which it did. [Site.Make] goes through everything that should be there and makes what is missing; it changes nothing
// that is there, and says of each part whether it was made, repaired or there already. [Site.Start] starts the two
// daemons as processes of their own, [Site.Attend] runs them in the foreground until they are to end, and
// [Site.Install] hands them to systemd. [Site.Stop] ends them, and [Site.Purge] removes the folder.
//
//	up.json              what the site was made with
//	pki/                 authority, and certificates of the control plane, the node and the user
//	node.yaml            the node's configuration; edits are kept
//	drives/d0.flash      the drive
//	control/, node/      what the daemons must not forget
//	run/control.pid      which process is the control plane: its id, when it began and its command
//	log/control.log      what it logs
//
// Folders are 0700, keys 0600. The daemons are this same program: `control run` and `node run`.
//
// # Concurrency
//
// A Site is for one goroutine. Two programs may work on one folder: a lock on up.lock lets them do so in turn.
//
// # Errors
//
// [ErrForeign] for what is there and was not made here, [ErrOther] for an option that contradicts the one that the site
// was made with, [ErrDaemon] for a daemon that does not start or stop.
//
// # Debugging
//
// The daemons' logs are in log/; the commands that start them are in run/*.pid.
package site
