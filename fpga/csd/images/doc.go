// Package images holds the image slots of a drive, and which image each of its regions executes.
//
// # Overview
//
// [Open] puts the stock image into slot 0, reads the images that the other slots held, and starts the last good image
// of each region. [Slots] then serves the controller's commands: an image is judged when it is loaded and again when it
// is tested or activated, gets an engine, and must pass its self-test before a region executes it. [Slots.Running]
// returns what a region executes, and [Slots.Kept] what it starts with next time, which the drive keeps. A slot's state
// changes in one function, by the table in slotstate.go. Every refusal stands in the log page of images with its
// reason.
//
// # Images
//
// Image slot 0 holds the stock image, which came with the drive and cannot be replaced. Slots 1 and 2 are the field
// pair: the deployed image and the one before it. Slot 3 is for trials; rollouts do not use it. Log page 03h reports
// the slots as firmware slots 1 to 4; vendor log C1h ([Slots.ImageLog]) reports everything.
//
// An image is judged when it is loaded (format, interface, revocation, signature, identifier), and again when it is
// activated. The drive must then have the image's units, and the image's known-answer vectors must come out; until they
// do, the old image stays active. The write of PATH.json commits: a kill before it leaves the old image active, a kill
// after it the new one. No image is activated in a region while another host holds memory of the region or a program
// executes there. A region starts with its last good image: the image that was active, else the one before it, else the
// stock image. The drive's trust ([Options].Trust) is kept; a host never sets it.
//
// # Concurrency
//
// Slots is safe for concurrent use, with one command at a time that changes the slots; one lock guards them. No lock is
// held while a self-test runs or a file is written.
//
// # Errors
//
// A command that fails has a status, and in the log page an image.LoadError: the step that failed, the image, and the
// interfaces of image and drive.
package images
