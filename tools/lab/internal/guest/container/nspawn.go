package container

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// launch runs in the guest's new namespaces: it waits until the parent has put
// the network cards there, mounts the root and becomes nspawn. Its own /run
// takes what nspawn would leave in the host's when it is killed. As the first
// process of a namespace nspawn takes the guest with it: killed elsewhere, it
// would leave a guest that runs on.
const launch = `
read -r _ || exit 1
mount -t proc proc /proc || exit 1
mount -t tmpfs tmpfs /run || exit 1
mount -t overlay overlay -o "$1" "$2" || exit 1
shift 2
exec "$@" < /dev/null
`

// nspawn finds systemd-nspawn among the unpacked packages.
func nspawn(cache string) (string, error) {
	path := filepath.Join(cache, "debs/systemd-container/usr/bin/systemd-nspawn")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find systemd-nspawn: %w; run tools/lab/packages.sh %s container", err, cache)
	}
	return path, nil
}

// start writes the seed anew and starts the container once.
func (m *machine) start(console *os.File) (*exec.Cmd, error) {
	upper, overlay, err := m.overlay()
	if err != nil {
		return nil, err
	}
	if err := forget(upper); err != nil {
		return nil, err
	}
	arguments, err := m.arguments()
	if err != nil {
		return nil, err
	}
	group, err := os.Open(m.group)
	if err != nil {
		return nil, fmt.Errorf("open control group: %w", err)
	}
	defer func() { _ = group.Close() }()

	cmd := exec.CommandContext(context.Background(), "/bin/sh",
		append([]string{"-c", launch, "launch", overlay, filepath.Join(m.Folder, "root")}, arguments...)...)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries(m.backend.Options.Cache), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Setsid:       true,
		Pdeathsig:    syscall.SIGKILL,
		UseCgroupFD:  true,
		CgroupFD:     int(group.Fd()),
	}
	ready, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare container: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start container: %w", err)
	}
	err = m.plug(cmd.Process.Pid)
	if err == nil {
		_, err = ready.Write([]byte("\n"))
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	m.mu.Lock()
	m.process = cmd.Process
	m.mu.Unlock()
	go m.sizeMemory()
	return cmd, nil
}

// plug puts the network cards into the namespace of process pid.
func (m *machine) plug(pid int) error {
	for i, nic := range m.Spec.NICs {
		if err := network.Delete(m.Links[i]); err != nil { // of the boot before a reboot
			return err
		}
		veth := network.Veth{Link: m.Links[i], Device: device(i), MAC: nic.MAC, PID: pid}
		if err := network.AddVeth(m.backend.Options.Network, veth); err != nil {
			return fmt.Errorf("plug in card %s: %w", nic.Name, err)
		}
	}
	return nil
}

// overlay is the root's upper folder and mount options.
func (m *machine) overlay() (upper, options string, err error) {
	for _, disk := range m.Spec.Disks {
		if !disk.Boot {
			continue
		}
		folder := m.backend.folder(disk.Volume)
		volume, err := readRoot(folder)
		if err != nil {
			return "", "", fmt.Errorf("read root disk %s: %w", disk.Name, err)
		}
		upper, work := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
		// A work folder of an overlay that was cut off is not taken again.
		if err := os.RemoveAll(work); err != nil {
			return "", "", fmt.Errorf("clean root disk %s: %w", disk.Name, err)
		}
		if err := os.MkdirAll(work, 0o755); err != nil {
			return "", "", fmt.Errorf("prepare root disk %s: %w", disk.Name, err)
		}
		return upper, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(volume.Layers, ":"), upper, work), nil
	}
	return "", "", fmt.Errorf("find root disk: none of %d disks boots", len(m.Spec.Disks))
}

// arguments are nspawn's command line.
func (m *machine) arguments() ([]string, error) {
	command, err := nspawn(m.backend.Options.Cache)
	if err != nil {
		return nil, err
	}
	lab, err := m.labFiles()
	if err != nil {
		return nil, err
	}
	out := []string{
		command, "--quiet", "--boot", "--directory=" + filepath.Join(m.Folder, "root"),
		"--machine=guest-" + m.Spec.UID, "--register=no", "--keep-unit", "--console=read-only",
		"--network-namespace-path=/proc/self/ns/net", "--capability=CAP_NET_ADMIN",
		"--resolv-conf=off", "--timezone=off", "--link-journal=no",
		"--bind-ro=" + lab + ":/run/lab",
	}
	if m.Spec.Seed != nil {
		seed := filepath.Join(m.Folder, "seed")
		if err := writeSeed(seed, m.Spec.Seed, m.Spec.NICs); err != nil {
			return nil, err
		}
		// Read-only and not on the root disk, as a seed disk.
		out = append(out, "--bind-ro="+seed+":/var/lib/cloud/seed/nocloud")
	}
	for _, disk := range m.Spec.Disks {
		if l := m.loops[disk.Volume]; l != nil {
			out = append(out, "--bind="+l.path(), "--bind="+l.path()+":/dev/disk/by-id/virtio-"+disk.Serial)
		}
	}
	return out, nil
}

// labFiles writes what the guest finds in /run/lab.
func (m *machine) labFiles() (string, error) {
	folder := filepath.Join(m.Folder, "lab")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create machine folder: %w", err)
	}
	for name, content := range map[string]string{
		"cmdline": m.backend.Options.BootArgument() + "\n",
		"meminfo": meminfo(m.Spec.MemoryMiB),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return "", fmt.Errorf("write %s for the guest: %w", name, err)
		}
	}
	return folder, nil
}

// meminfo lets the guest size itself by its own memory, not the host's.
func meminfo(mib int) string {
	kib := mib * 1024
	return fmt.Sprintf("MemTotal: %15d kB\nMemFree: %16d kB\nMemAvailable: %11d kB\nBuffers: %16d kB\nCached: %17d kB\n"+
		"SwapCached: %13d kB\nSwapTotal: %14d kB\nSwapFree: %15d kB\n", kib, kib/2, kib*3/4, 0, kib/4, 0, 0, 0)
}

// libraries is where the unpacked systemd-nspawn finds its own.
func libraries(cache string) string {
	root := filepath.Join(cache, "debs/systemd-container/usr/lib")
	folders, _ := filepath.Glob(filepath.Join(root, "*-linux-gnu*", "systemd")) // the pattern is well-formed
	return strings.Join(append(folders, filepath.Join(root, "systemd")), ":")
}
