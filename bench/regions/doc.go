// Package regions measures the regions of a drive: how fast a region is switched to another image, what the jobs of
// other regions lose meanwhile, how rates add up over regions, and what ordinary reads and writes of a host beside them
// take.
//
// # What is measured
//
// [Run] makes a drive in memory or in a file with a partition of each workload, and jobs that make mini-batches of them
// in its regions, each by an association of its own in this process. Then:
//
//   - Switch: a job is interrupted at a random moment, its region activates the other of two images that lie in the
//     drive's slots and were tested, and the job goes on over the memory that it holds. The drain is the time from the
//     interruption to the end of the slice that executed; the switch is the time from there to the moment at which the
//     drive accepted the first slice afterwards. So the activation is in it, with judgement, self-test and what the
//     drive keeps of it, and so is what the host does between two slices. A job in each of some other regions computes
//     meanwhile, so that there are as many threads as cores, and at least one such job.
//   - Beside: the rates of those jobs while the job of one more region goes on without a switch, and while its region
//     is switched after each of its mini-batches, in turns. The region is busy in both, so that the loss is what
//     switching does to the others, and not a share of the processor that a busy region takes in any case. It may be
//     below 0: a region computes nothing during a switch, and leaves more to the others meanwhile.
//   - Throughput: the rates of jobs of one workload in 1, 2, 4 and 7 regions, and of all workloads mixed. The speedup
//     is the sum over the jobs of each one's rate over the rate of its workload alone. Pipelines with a vocabulary look
//     the ids up in the drive; it is built before, of the same partition.
//   - Host I/O: latencies of a host's 4 KiB reads and writes at random places of the flash, and the rates of jobs in as
//     many regions as there are cores: each of the two alone, and both, without a limit and with Options.HostIOShare.
//
// Regions of a software drive are threads: their rates add up as far as there are cores, which Result names. With
// Options.Timing the drive takes the time of the model in package timing, and only the throughput is measured.
//
// # Errors
//
// [ErrOptions] for options that cannot be measured. Other errors name the measurement.
//
// # Debugging
//
// A switch that takes long shows its part in SwitchResult: the activation is a command of its own.
package regions
