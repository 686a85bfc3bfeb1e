package guesttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// agentWithin bounds one conversation: an emulated guest may be busy.
const agentWithin = time.Minute

// insideVM runs a command in a virtual machine through its agent, and returns
// what it prints and whether it succeeded.
func (l *lab) insideVM(t *testing.T, name string, command ...string) (output string, ok bool) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		vmi, err := l.vmi(ctx, name)
		if err != nil || vmi == nil {
			return errors.Join(err, errors.New("no machine runs"))
		}
		c, err := dialAgent(ctx, filepath.Join(l.dir, "guests", string(vmi.GetUID()), "agent.sock"))
		if err != nil {
			return err
		}
		defer c.conn.Close()
		output, ok, err = c.run(ctx, command)
		return err
	})
	return strings.TrimSpace(output), ok
}

// agent is a conversation with QEMU's guest agent: a line of JSON each.
type agent struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dialAgent(ctx context.Context, socket string) (*agent, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	a := &agent{conn: conn, reader: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(agentWithin)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	// Drops what an earlier conversation has left half read or unanswered.
	id := time.Now().UnixNano() % 1e9
	_, err = fmt.Fprintf(conn, "\xff{\"execute\":\"guest-sync-delimited\",\"arguments\":{\"id\":%d}}\n", id)
	for err == nil {
		var line []byte
		if line, err = a.reader.ReadBytes('\n'); bytes.Contains(line, fmt.Append(nil, id)) {
			return a, nil
		}
	}
	return nil, errors.Join(err, conn.Close())
}

func (a *agent) call(command string, arguments, result any) error {
	request, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return err
	}
	if _, err := a.conn.Write(append(request, '\n')); err != nil {
		return err
	}
	line, err := a.reader.ReadBytes('\n')
	if err != nil {
		return err
	}
	answer := struct {
		Return any
		Error  *struct{ Desc string }
	}{Return: result}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("call %s: %s", command, answer.Error.Desc)
	}
	return nil
}

func (a *agent) run(ctx context.Context, command []string) (string, bool, error) {
	var process struct{ PID int }
	arguments := map[string]any{"path": command[0], "arg": command[1:], "capture-output": true}
	if err := a.call("guest-exec", arguments, &process); err != nil {
		return "", false, err
	}
	for {
		var status struct {
			Exited   bool
			ExitCode int
			Out      []byte `json:"out-data"`
			Err      []byte `json:"err-data"`
		}
		if err := a.call("guest-exec-status", map[string]any{"pid": process.PID}, &status); err != nil {
			return "", false, err
		}
		if status.Exited {
			return string(status.Out) + string(status.Err), status.ExitCode == 0, nil
		}
		select {
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-time.After(look): // the agent has no event for it
		}
	}
}
