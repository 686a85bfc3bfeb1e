package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// A channel speaks JSON lines with QEMU's monitor or with the guest's agent.
type channel struct {
	conn   net.Conn
	reader *bufio.Reader
}

type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
}

func dial(ctx context.Context, socket string) (*channel, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to qemu: %w", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &channel{conn: conn, reader: bufio.NewReader(conn)}, nil
}

func (c *channel) close() { _ = c.conn.Close() }

// send writes a command. prefix clears what the other side has half read.
func (c *channel) send(prefix, command string, arguments any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("marshal %s: %w", command, err)
	}
	if _, err := c.conn.Write(append([]byte(prefix), append(line, '\n')...)); err != nil {
		return fmt.Errorf("send %s: %w", command, err)
	}
	return nil
}

func (c *channel) receive() (answer, error) {
	var a answer
	line, err := c.reader.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("read answer: %w", err)
	}
	// The agent marks the answer to a synchronization with a byte before it.
	line = line[bytes.LastIndexByte(line, 0xff)+1:]
	return a, json.Unmarshal(line, &a)
}

// call sends a command and puts its result into result, unless that is nil.
func (c *channel) call(command string, arguments, result any) error {
	if err := c.send("", command, arguments); err != nil {
		return err
	}
	for {
		a, err := c.receive()
		switch {
		case err != nil:
			return fmt.Errorf("call %s: %w", command, err)
		case a.Event != "":
			continue
		case a.Error != nil:
			return fmt.Errorf("call %s: %s", command, a.Error.Desc)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(a.Return, result)
		}
	}
}

// synchronize throws away what an earlier user of the agent's channel left there.
func (c *channel) synchronize() error {
	id := rand.Int32()
	if err := c.send("\xff", "guest-sync-delimited", map[string]any{"id": id}); err != nil {
		return err
	}
	for {
		a, err := c.receive()
		if _, garbled := errors.AsType[*json.SyntaxError](err); garbled {
			continue
		}
		if err != nil {
			return fmt.Errorf("synchronize with agent: %w", err)
		}
		var got int32
		if json.Unmarshal(a.Return, &got) == nil && got == id {
			return nil
		}
	}
}

// monitorCall runs one command on QEMU's monitor.
func (m *machine) monitorCall(ctx context.Context, command string, arguments, result any) error {
	m.monitorMu.Lock()
	defer m.monitorMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, monitorWithin)
	defer cancel()
	c, err := dial(ctx, m.monitor())
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.receive(); err != nil { // the greeting
		return err
	}
	if err := c.call("qmp_capabilities", nil, nil); err != nil {
		return err
	}
	return c.call(command, arguments, result)
}

const (
	monitorWithin = 10 * time.Second
	agentWithin   = 30 * time.Second // an emulated guest may be busy
)
