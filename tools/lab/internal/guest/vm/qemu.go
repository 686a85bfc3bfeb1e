package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"golang.org/x/sys/unix"
)

// firstFD is the number of the first file that a child process inherits.
const firstFD = 3

// start runs QEMU. It ends with this thread (Pdeathsig), and its cards with it.
func (m *machine) start() (*exec.Cmd, error) {
	if err := m.seed(); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(m.Folder, "qemu.log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), "qemu-system-x86_64", m.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	for _, link := range m.Links {
		card, err := tap(m.backend.Options.Network, link)
		if err != nil {
			return nil, err
		}
		defer func() { _ = card.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, card)
	}
	// A socket of an earlier boot with this UID would be taken for the new one's.
	for _, socket := range []string{m.monitor(), m.agentSocket()} {
		if err := os.RemoveAll(socket); err != nil {
			return nil, fmt.Errorf("remove old socket: %w", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start qemu: %w", err)
	}
	return cmd, nil
}

func (m *machine) arguments() []string {
	// Emulated, each feature that the CPU has makes the guest load and test a
	// driver for it; this model has what Debian's packages may count on.
	accelerator, cpu := "tcg,thread=multi,tb-size=512", "Nehalem"
	if kvm() {
		accelerator, cpu = "kvm", "host"
	}
	image := m.backend.Image
	out := []string{
		"-name", "guest-" + m.Spec.UID, "-machine", "q35", "-accel", accelerator, "-cpu", cpu,
		"-m", fmt.Sprint(m.Spec.MemoryMiB), "-smp", fmt.Sprint(max(1, m.Spec.VCPU)),
		"-nodefaults", "-no-user-config", "-display", "none",
		"-kernel", image.Kernel, "-initrd", image.Initrd,
		"-append", "root=LABEL=rootfs rw console=ttyS0 loglevel=4 systemd.show_status=false mitigations=off audit=0 " +
			m.backend.Options.BootArgument(),
		"-serial", "file:" + m.ConsoleLog(), "-qmp", "unix:" + m.monitor() + ",server=on,wait=off",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,path=" + m.agentSocket() + ",server=on,wait=off",
		"-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
	}
	for i, disk := range m.Spec.Disks {
		volume := guest.Volume{Name: disk.Volume, FromImage: disk.Boot}
		format := "raw"
		if disk.Boot {
			format = "qcow2"
		}
		device := fmt.Sprintf("virtio-blk-pci,drive=disk%d", i)
		if disk.Serial != "" {
			device += ",serial=" + disk.Serial
		}
		// What QEMU was told is in the host's page cache: killing QEMU loses what
		// the guest had not flushed, and flushing the host's disk adds nothing.
		out = append(out, "-drive", fmt.Sprintf("if=none,id=disk%d,file=%s,format=%s,cache=unsafe,discard=unmap",
			i, m.backend.path(volume), format), "-device", device)
	}
	if m.Spec.Seed != nil {
		out = append(out, "-drive", "if=none,id=seed,format=raw,readonly=on,file="+m.seedFile(), "-device", "virtio-blk-pci,drive=seed")
	}
	for i, nic := range m.Spec.NICs {
		out = append(out, "-netdev", fmt.Sprintf("tap,id=net%d,fd=%d", i, firstFD+i),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=net%d,mac=%s,romfile=", i, nic.MAC))
	}
	return out
}

// kvm says whether the CPU virtualizes. /dev/kvm alone proves nothing: it may
// belong to a software backend that is slower than QEMU's own emulation.
func kvm() bool {
	flags, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !regexp.MustCompile(`(?m)^flags.*\b(svm|vmx)\b`).Match(flags) {
		return false
	}
	if _, err := os.Stat("/sys/module/kvm_pvm"); err == nil {
		return false
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// tap makes a card's link on the network; it lives as long as someone has it open.
func tap(n int, name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = network.Attach(n, name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create link %s: %w", name, err), file.Close())
	}
	return file, nil
}

// seed writes the NoCloud disk, which cloud-init finds by its label.
func (m *machine) seed() error {
	if m.Spec.Seed == nil {
		return nil
	}
	folder := filepath.Join(m.Folder, "seed")
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create seed folder: %w", err)
	}
	files := map[string][]byte{"meta-data": m.Spec.Seed.MetaData(), "user-data": m.Spec.Seed.UserData}
	if len(strings.TrimSpace(string(m.Spec.Seed.NetworkData))) > 0 {
		files["network-config"] = m.Spec.Seed.NetworkData
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("write seed: %w", err)
		}
	}
	out, err := exec.CommandContext(context.Background(), "genisoimage", "-quiet", "-volid", "cidata", "-joliet", "-rock",
		"-output", m.seedFile(), folder).CombinedOutput()
	if err != nil {
		return fmt.Errorf("write seed disk: %w: %s", err, out)
	}
	return os.Chmod(m.seedFile(), 0o600)
}

func (m *machine) seedFile() string    { return filepath.Join(m.Folder, "seed.iso") }
func (m *machine) monitor() string     { return filepath.Join(m.Folder, "qmp.sock") }
func (m *machine) agentSocket() string { return filepath.Join(m.Folder, "agent.sock") }
