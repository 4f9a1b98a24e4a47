// Package endtoend holds the tests of the service as a whole: real etcd, real storage nodes over drives, launchers, and
// what may happen to each. It has no code of its own.
//
//	TestTheServiceGivesWhatOneMachineGives   a job over two nodes, beside package trainmgr/local
//	TestOneJobManyWays                       drives x transports x orders x faults, pairwise; all of them with MILLRACE_METAMORPHIC=full
//	TestALinkThatIsCut                       control plane and nodes in network namespaces, behind links that lose everything for a while
//	TestALeaderThatWasReplaced...            a node keeps the latest leader's fence over its restart
//	TestSoak                                 processes killed at random for 20 s (a minute in CI), or as long as MILLRACE_SOAK says; `make long` has both long forms
//
// Network namespaces want root and iproute2; where there are none the test says why it was skipped, unless
// MILLRACE_NETNS=1 says that there are.
//
// The processes of a soak are this test's binary, started again in a role.
package endtoend
