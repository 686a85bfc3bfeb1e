package container

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestANsenterThatStopsIsKilled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "kill -STOP $$; exit 0") // as nsenter does to itself
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go killStopped(cmd.Process)
	_ = cmd.Wait() // its state says more
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

func TestAnNsenterThatRunsIsLeftAlone(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "exit 3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go killStopped(cmd.Process)
	_ = cmd.Wait() // its state says more
	if cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}
