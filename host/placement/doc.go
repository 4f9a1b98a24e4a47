// Package placement decides which drives hold which partitions. It is pure: it reads the drives' inventories and
// returns the copies to be made, and its caller makes them.
//
// # Overview
//
// A job lets at most T/P drives run at once, and only a drive that holds a partition preprocesses it. So data are
// spread such that the drives finish together: [Spread] places new partitions where rows / P is least, largest first,
// and the copies of one partition on different nodes as long as there are nodes to choose from. [Replicate] brings
// every partition to the number of copies that is wanted. [Retire] finds new drives for the partitions of a drive, so
// that the drive can be taken out and no partition has fewer copies than wanted. [Check] assesses a placement: its
// faults, and the T that it can sustain.
//
// # Concurrency
//
// The functions change none of their arguments, and may be called from any number of goroutines.
//
// # Errors
//
// [ErrRoom] says that the drives lack room, [ErrReplicas] that there are fewer drives than copies wanted. Each error
// names the partition.
//
// # Debugging
//
// `millrace dataset place --dry-run` prints the copies that would be made.
package placement
