// Package house holds the floor plan of the project: which package stands on which floor, and which imports that
// allows. Its test reads every Go file of the tree, test files included, and fails on an arrow that runs up.
//
// The floors, from the ground: nvme, fpga, sdk, host, trainmgr, control, capacity, cmd, bench. The last is a module of
// its own, which measures the product and which nothing of the product imports. These rules go beyond "only what is
// below":
//
//   - package trainmgr imports only sdk/dataset, sdk/pipeline and its rooms, sdk/tensor, host/api and rooms of its own
//     that import no more (and the standard library); trainmgr/allocation and trainmgr/offload import no package of the
//     module, and trainmgr/autoscale imports the first of them;
//   - host never imports trainmgr (which the floors already say, and which is checked by name all the same);
//   - only control and cmd link etcd; only they, host/node, host/node/metrics, host/exposition and host/worker
//     link Prometheus;
//   - host/api and the packages below it hold types, and import no other package of host;
//   - only host/source/s3 links the client library of S3, and no package that a launcher imports links host/source/s3;
//   - examples import the floors that a user may import (nvme, fpga, sdk, host, trainmgr, control) and each other;
//     nothing else imports examples.
//
// In fpga/unit, the reference of a unit and its kernel share types, constants and errors, and nothing else (CheckUnit
// for packages, TestReferencesShareOnlyTypes for the files of one). In fpga/operator, the reference of an operator
// imports no kernel and no engine, and only the reference engine links it (CheckOperator).
//
// Package sdk is about drives. The packages below it that are not (sdk/dataset, sdk/pipeline, sdk/tensor,
// sdk/partition, sdk/target, sdk/slicer, sdk/processor, sdk/cpu, sdk/rtl) do not import it, and only sdk/cpu (the cpu
// and the reference engine) reaches fpga/engine, fpga/block and the kernels and references of operators from above
// fpga. CheckOperator has the rules for the packages of an operator.
package house
