// Package summaries makes the passes over the data of a cluster that end in a vocabulary ([Vocabulary]) or in the
// statistics of columns ([Statistics]). It is a package of its own, so that launchers do not link it.
//
//	client, err := remote.Dial(remote.Options{Control: members})
//	defer client.Close()
//	pass := &summaries.Vocabulary{Pipeline: spec, Name: "piper", Path: "criteo.vocab", Work: "criteo.work"}
//	made, err := pass.Run(ctx, client)
//
// # Overview
//
// A pass is a job of the control plane, and the caller its only rank, the reducer. The job's pipeline yields the keys
// of the vocabulary (the part of the given pipeline before the lookup), or the values of the columns. Its plan goes
// through the data set in order, unshuffled, with every row. Drives, nodes and workers make the values, and the reducer
// takes them as mini-batches: 8 bytes a key or integer, 4 bytes a real number, and 4 bytes a list. The file is the same
// bytes as that of package trainmgr/local over the same partitions.
//
// # The work folder
//
// From time to time a pass keeps in the work folder what it has folded in. A pass for a vocabulary keeps parts: a
// sorted run of each table, and the token of the mini-batches that are in it, in one file that gets its name when it is
// whole and on the disk. Parts are merged by sixteen, so that they are few and take little more than their keys do. A
// pass for statistics keeps a state for each partition that has ended, and one of the partition that is being read. A
// folder belongs to one pass, and one process uses it at a time.
//
//	pass.json                  what the pass is
//	lock                       held by the process that uses the folder
//	part-00000001-00000016     a part, or what sixteen parts were merged into
//	partition-00000000         the state of a partition that has ended
//	open                       the state of the partition that is being read
//	temporary                  runs of the process that is there; removed when the next one begins
//
// The folder alone says what was taken. A process that goes on in it, because the last one was killed or found the disk
// full, cancels the job of the last one and submits the job again with the token of what the folder holds; mini-batches
// that the last process had acknowledged and not kept come again. So a kill of the reducer, of a node or of a leader
// repeats work and changes no byte. pass.json says what a vocabulary's file holds before the file gets its name: a call
// behind one that ended between that and the removal of the folder says what was made, also where the vocabulary that
// is extended was replaced.
//
// # Concurrency
//
// Run folds the columns of a mini-batch on as many goroutines as the machine runs at once. They end before Run returns.
//
// # Errors
//
// [ErrInUse] says that another process uses the work folder, [ErrWork] that the folder is damaged, a *[OtherPassError]
// that the folder is of another pass, and a *[RoomError] that there is no room on a disk. dataset.ErrOtherJob says that
// the cluster's data is no longer that of the pass. After any error but ErrWork and *OtherPassError the same call goes
// on where this one ended.
//
// # Debugging
//
// The job is among those of `millrace jobs list` and has the name that pass.json says. Vocabulary.Logger logs parts and
// merges, Statistics.Logger states.
package summaries
