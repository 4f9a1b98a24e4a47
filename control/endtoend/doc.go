// Package endtoend holds the tests of the service as a whole: real etcd, real storage nodes over drives, launchers, and
// the faults of each. It has no code of its own.
//
//	TestTheServiceGivesWhatOneMachineGives
//		a job over two nodes gives what package trainmgr/local gives
//	TestOneJobManyWays
//		drives x transports x orders x faults, pairwise; all of them with MILLRACE_METAMORPHIC=full
//	TestALinkThatIsCut
//		control plane and nodes in network namespaces, behind links that lose everything for a while
//	TestALeaderThatWasReplaced...
//		a node keeps the latest leader's fence over its restart
//	TestSoak
//		processes are killed at random for 20 s (a minute in CI), or as long as MILLRACE_SOAK says; `make long` has
//		both long forms
//
// Network namespaces need root and iproute2. Where they are missing the test says why it was skipped, unless
// MILLRACE_NETNS=1 says that they are there.
//
// The processes of a soak are the binary of this test, started again in a role.
package endtoend
