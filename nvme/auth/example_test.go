package auth_test

import (
	"fmt"

	"github.com/millrace/millrace/nvme/auth"
)

// A host and a target authenticate each other; the loop stands for the commands that a transport carries.
func Example() {
	const hostNQN, subsystemNQN = "nqn.2025-01.example:host", "nqn.2025-01.example:drive"
	hostKey, _ := auth.GenerateKey(auth.SHA256)
	driveKey, _ := auth.GenerateKey(auth.SHA256)

	host, err := auth.NewHost(auth.HostOptions{HostNQN: hostNQN, SubsystemNQN: subsystemNQN, Key: hostKey,
		ControllerKey: driveKey})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := auth.NewResponder(auth.ControllerOptions{HostNQN: hostNQN, SubsystemNQN: subsystemNQN, Key: hostKey,
		ControllerKey: driveKey})
	if err != nil {
		fmt.Println(err)
		return
	}

	var received []byte
	for {
		out, done, err := host.Step(received)
		if out != nil {
			_ = queue.Send(out) // Authentication Send
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if done {
			break
		}
		received, _ = queue.Receive(auth.MaxMessage) // Authentication Receive
	}
	fmt.Println(host.Agreed(), queue.Authenticated())
	// Output: SHA-512, ffdhe3072 true
}
