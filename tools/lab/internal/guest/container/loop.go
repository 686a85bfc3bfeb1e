package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// loopTries bounds the race for free loop devices with others on this host.
const loopTries = 100

// A loop is a block device over a file. The kernel frees it when its last user
// has closed it, so that a lab which is killed leaves none.
type loop struct {
	device *os.File
	file   string
}

func attach(file string) (*loop, error) {
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	defer func() { _ = backing.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open loop control: %w", err)
	}
	defer func() { _ = control.Close() }()
	for range loopTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := open(number)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd())}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		copy(config.Info.File_name[:], file)
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return &loop{device: device, file: file}, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("configure %s: %w", device.Name(), err)
		}
	}
	return nil, errors.New("find a free loop device: others were faster each time")
}

// open opens /dev/loopN; without udev its node may have to be made first.
func open(number int) (*os.File, error) {
	name := fmt.Sprintf("/dev/loop%d", number)
	const loopMajor = 7
	err := unix.Mknod(name, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(number))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make device %s: %w", name, err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open loop device: %w", err)
	}
	return f, nil
}

func (l *loop) path() string { return l.device.Name() }

// grow makes the device as large as its file is now.
func (l *loop) grow() error {
	if err := unix.IoctlSetInt(int(l.device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow %s: %w", l.path(), err)
	}
	return nil
}

// detach closes the device and returns when it is free: the guest's mounts go a
// moment after its last process.
func (l *loop) detach(ctx context.Context) error {
	if err := l.device.Close(); err != nil {
		return fmt.Errorf("close loop device: %w", err)
	}
	for l.busy() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("free %s: it is still in use: %w", l.path(), ctx.Err())
		case <-time.After(5 * time.Millisecond): // no event tells of it
		}
	}
	return nil
}

func (l *loop) busy() bool {
	name := filepath.Join("/sys/block", filepath.Base(l.path()), "loop/backing_file")
	b, err := os.ReadFile(name)
	return err == nil && strings.TrimSpace(string(b)) == l.file
}
