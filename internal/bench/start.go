package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// starts is how often a program is started; the median counts.
const starts = 15

// footprint is what a provider needs until it has shaken hands.
type footprint struct{ cpu, rss, size float64 }

// start compares the provider with one that does nothing.
func (b *bench) start(ctx context.Context) ([]result, error) {
	floorProgram, err := b.compile(ctx, "noop", "./internal/bench/noop")
	if err != nil {
		return nil, err
	}
	floor, err := atHandshake(ctx, floorProgram)
	if err != nil {
		return nil, err
	}
	got, err := atHandshake(ctx, b.provider)
	if err != nil {
		return nil, err
	}
	return []result{
		measured("start: CPU until the handshake", "ms", got.cpu, floor.cpu, 2.5*floor.cpu),
		measured("start: peak memory", "MiB", got.rss, floor.rss, 3*floor.rss),
		measured("start: stripped program", "MiB", got.size, floor.size, 3*floor.size),
	}, nil
}

func atHandshake(ctx context.Context, program string) (footprint, error) {
	var cpu, rss []float64
	for range starts {
		used, err := shakeHands(ctx, program)
		if err != nil {
			return footprint{}, err
		}
		cpu, rss = append(cpu, used.cpu), append(rss, used.rss)
	}
	file, err := os.Stat(program)
	if err != nil {
		return footprint{}, err
	}
	return footprint{median(cpu), median(rss), float64(file.Size()) / (1 << 20)}, nil
}

// shakeHands starts a provider as Terraform does, reads its one line, and ends
// it.
func shakeHands(ctx context.Context, program string) (footprint, error) {
	ctx, stop := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, program)
	// The cookie of Terraform's protocol: go-plugin serves nobody without it.
	command.Env = append(os.Environ(), "TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2", "PLUGIN_PROTOCOL_VERSIONS=6")
	out, err := command.StdoutPipe()
	if err != nil {
		stop()
		return footprint{}, err
	}
	if err := command.Start(); err != nil {
		stop()
		return footprint{}, err
	}
	defer func() { stop(); _ = command.Wait() }() // it was killed
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.Count(line, "|") < 4 {
		return footprint{}, fmt.Errorf("%s says %q at its start: %w", program, line, err)
	}
	return usage(command.Process.Pid)
}

// usage is what a process has used so far.
func usage(pid int) (footprint, error) {
	var used footprint
	// A process's own schedstat is that of its first thread.
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return used, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
		if err != nil {
			continue // it has ended
		}
		nanoseconds, err := strconv.ParseFloat(strings.Fields(string(stat))[0], 64)
		if err != nil {
			return used, err
		}
		used.cpu += nanoseconds / 1e6
	}
	used.rss, err = peakMemory(pid)
	return used, err
}

// peakMemory of a process, in MiB.
func peakMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no peak memory", pid)
}
