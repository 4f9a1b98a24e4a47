// Package site sets up a whole cluster on one machine and takes it down again: an authority with certificates, a
// control plane, a storage node with a drive, and the contexts by which commands and launchers find them. `millrace up`
// and `millrace down` are this package.
//
// # Overview
//
// A [Site] is a folder. [Open] makes it or finds it; the record up.json marks a folder that this package made, and
// Open refuses any other. [Site.Make] makes every part that is missing. It changes no part that is there, and returns
// for each part whether it was made, repaired or there already. [Site.Start] starts the two daemons as processes of
// their own, [Site.Attend] runs them in the foreground, and [Site.Install] makes systemd run them. [Site.Stop] ends
// them, and [Site.Purge] removes the folder.
//
//	up.json              what the site was made with
//	pki/                 authority; certificates of the control plane, the node, the user, the user's launchers
//	node.yaml            the node's configuration; edits are kept
//	drives/d0.flash      the drive
//	control/, node/      the state of the daemons
//	run/control.pid      the process of the control plane: its id, its start time and its command
//	log/control.log      its log
//
// Folders are 0700, keys 0600. The daemons are this same program: `control run` and `node run`.
//
// # Concurrency
//
// A Site is for one goroutine. Two programs may work on one folder, one after the other: each holds a lock on up.lock.
//
// # Errors
//
// [ErrForeign] says that the folder holds something that this package did not make, [ErrOther] that an option
// contradicts the option with which the site was made, and [ErrDaemon] that a daemon does not start or stop.
//
// # Debugging
//
// The daemons' logs are in log/; the commands that start them are in run/*.pid.
package site
