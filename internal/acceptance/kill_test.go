package acceptance

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// killed starts a command, and kills Terraform and the provider, without a
// chance to clean up, as soon as the VM looks as wanted.
func (c *cli) killed(l *lab, name string, when func(*unstructured.Unstructured) bool, arguments ...string) {
	c.t.Helper()
	c.signalled(syscall.SIGKILL, l, name, when, arguments...)
}

// signalled is killed by any signal that ends a process. It returns what was
// printed.
func (c *cli) signalled(signal syscall.Signal, l *lab, name string, when func(*unstructured.Unstructured) bool, arguments ...string) string {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer stop()
	events, err := l.dynamic.Resource(machines()).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name})
	must(c.t, err)
	defer events.Stop()
	command := exec.CommandContext(ctx, program(), arguments...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), c.environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	must(c.t, command.Start())
	for event := range events.ResultChan() {
		machine, ok := event.Object.(*unstructured.Unstructured)
		if ok && when(machine) {
			break
		}
	}
	must(c.t, syscall.Kill(-command.Process.Pid, signal))
	if command.Wait() == nil {
		c.t.Fatal("the run ended before it was killed")
	}
	return out.String()
}

func halted(machine *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(machine.Object, "spec", "runStrategy")
	return strategy == "Halted"
}

// A resize is killed between stop and start, where the machine stands still:
// the next apply finishes it and starts.
func TestResizeKilledBetweenStopAndStartIsFinished(t *testing.T) {
	l := useLab(t)
	c := newProcessCLI(t, l.module("slain", nil))
	apply := []string{"apply", "-auto-approve", "-input=false", "-no-color"}
	c.must(apply...)
	before := c.attributes(it)
	// The kill comes at the news of the stop; should a run have been faster than
	// the news, its resize is done, and the next one is killed.
	class := ""
	for _, class = range []string{"db.t3.medium", "db.t3.small", "db.t3.medium", "db.t3.small", "db.t3.medium"} {
		c.write(l.module("slain", args{"instance_class": quote(class), "allocated_storage": "20"}))
		c.killed(l, "slain", halted, apply...)
		if halted(l.machine("slain")) {
			break
		}
	}
	if !halted(l.machine("slain")) {
		t.Fatal("no run was killed while the machine stood still")
	}
	size := map[string][2]float64{"db.t3.medium": {2, 4096}, "db.t3.small": {1, 2048}}[class]
	c.must(apply...)
	after := c.attributes(it)
	for attribute, want := range map[string]any{
		"status": "available", "status_reason": nil, "running": true, "vcpu": size[0], "memory_mib": size[1], "allocated_storage": float64(20),
		"master_password": before["master_password"], "ca_cert_pem": before["ca_cert_pem"], "instance_id": before["instance_id"],
	} {
		if after[attribute] != want {
			t.Errorf("%s is %v, want %v", attribute, after[attribute], want)
		}
	}
	if code, out := c.run("plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 {
		t.Errorf("a second plan: exit code %d\n%s", code, out)
	}
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("slain")(nil))
}
