// Package placement decides which drives hold which partitions. It is pure: it reads what the drives hold and returns
// the copies to be made; somebody else makes them.
//
// # Overview
//
// A job lets at most T/P drives run at once, and a partition is preprocessed only by a drive that holds it. So data are
// spread such that the drives come to an end together: [Spread] puts new partitions where rows / P is least, largest
// first, and replicas of one partition on different nodes as long as there are nodes to choose from. [Replicate] brings
// every partition to the number of copies that it is to have, [Retire] finds a new home for what a drive holds, so that
// the drive can be taken out and no partition has fewer copies than it is to have, and [Check] says what a placement
// lacks, and what T it can sustain at most.
//
// # Errors
//
// [ErrRoom] when the drives lack room, [ErrReplicas] when there are fewer drives than copies wanted; each names the
// partition.
package placement
