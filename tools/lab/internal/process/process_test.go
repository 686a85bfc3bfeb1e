package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, command ...string) (dir string, p *Process) {
	t.Helper()
	dir = t.TempDir()
	p, err := Start(Spec{Name: "piece", RunDir: dir, Log: filepath.Join(dir, "piece.log"), Command: command})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Stop(dir, "piece", time.Second); err != nil {
			t.Error(err)
		}
	})
	return dir, p
}

func TestStopEndsARunningPiece(t *testing.T) {
	dir, p := start(t, "sleep", "1000")
	pid, running, err := Find(dir, "piece")
	if err != nil || !running {
		t.Fatalf("Find = %d, %v, %v; want a running process", pid, running, err)
	}
	if err := Stop(dir, "piece", time.Minute); err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if want := "piece: signal: terminated"; p.String() != want {
		t.Errorf("it ended as %q, want %q", p, want)
	}
	if _, running, _ := Find(dir, "piece"); running {
		t.Error("Find says that it still runs")
	}
}

func TestStopKillsAPieceThatIgnoresSIGTERM(t *testing.T) {
	dir, p := start(t, "sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1000; done`)
	for text := ""; !strings.Contains(text, "ready"); {
		b, err := os.ReadFile(filepath.Join(dir, "piece.log"))
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	if err := Stop(dir, "piece", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if want := "piece: signal: killed"; p.String() != want {
		t.Errorf("it ended as %q, want %q", p, want)
	}
}

// A process number is used again some day, perhaps by the user's editor.
func TestStopLeavesAnotherProcessOfTheSameNumberAlone(t *testing.T) {
	dir, p := start(t, "sleep", "1000")
	file := filepath.Join(dir, "piece.pid")
	id, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(id))
	begin, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	fields[1] = strconv.Itoa(begin - 1)
	if err := os.WriteFile(file, []byte(strings.Join(fields, " ")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Stop(dir, "piece", time.Minute); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
		t.Fatalf("Stop ended a process that is not the piece: %s", p)
	default:
	}
	// The cleanup finds it again.
	if err := os.WriteFile(file, id, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStopOfNothingIsNoError(t *testing.T) {
	if err := Stop(t.TempDir(), "piece", time.Minute); err != nil {
		t.Error(err)
	}
}
