// Package packages is the way from a lab's guests to Debian's packages: the
// mirrors that this host uses, and a caching proxy that leads to these alone.
package packages

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
)

// Mirrors are Debian's package sources in the host's own apt configuration.
type Mirrors struct {
	// Archive and Security are where Debian and its security updates come from.
	Archive, Security *url.URL
	// Proxy is apt's own proxy, or nil.
	Proxy *url.URL
}

// HostMirrors asks apt. Sources that are not Debian's are left out.
func HostMirrors(ctx context.Context) (Mirrors, error) {
	m, err := ask(ctx)
	if err == nil && m.Archive == nil {
		// apt knows whose a source is only once it has fetched its index.
		if out, failed := exec.CommandContext(ctx, "apt-get", "-q", "update").CombinedOutput(); failed != nil {
			return Mirrors{}, fmt.Errorf("update apt's lists: %w\n%s", failed, out)
		}
		m, err = ask(ctx)
	}
	if err != nil {
		return Mirrors{}, err
	}
	if m.Archive == nil {
		return Mirrors{}, errors.New("find Debian's package sources: apt's configuration on this host names none")
	}
	if m.Security == nil {
		beside := *m.Archive
		beside.Path = strings.TrimSuffix(beside.Path, "/") + "-security"
		m.Security = &beside
	}
	return m, nil
}

// Sources is the deb822 file for Debian 12. With plain it names http instead of
// https: what a guest asks the lab's proxy for.
func (m Mirrors) Sources(plain bool) string {
	stanza := func(u *url.URL, suites string) string {
		own := *u
		if plain {
			own.Scheme = "http"
		}
		return fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n"+
			"Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n", own.String(), suites)
	}
	return stanza(m.Archive, "bookworm bookworm-updates") + "\n" + stanza(m.Security, "bookworm-security")
}

func ask(ctx context.Context) (Mirrors, error) {
	const format = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", format, "Identifier: Packages").Output()
	if err != nil {
		return Mirrors{}, fmt.Errorf("ask apt for its sources: %w", err)
	}
	m := parse(string(out))
	proxy, err := exec.CommandContext(ctx, "apt-config", "shell", "P", "Acquire::http::Proxy").Output()
	if err != nil {
		return Mirrors{}, fmt.Errorf("ask apt for its proxy: %w", err)
	}
	if value := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(proxy)), "P="), "'"); value != "" && value != "DIRECT" {
		if m.Proxy, err = url.Parse(value); err != nil {
			return Mirrors{}, fmt.Errorf("parse apt's proxy: %w", err)
		}
	}
	return m, nil
}

func parse(targets string) Mirrors {
	var m Mirrors
	for line := range strings.Lines(targets) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 3 || fields[0] != "Debian" {
			continue
		}
		u, err := url.Parse(fields[2])
		if err != nil || u.Host == "" {
			continue // a cdrom or a folder
		}
		switch {
		case fields[1] == "Debian" && m.Archive == nil:
			m.Archive = u
		case fields[1] == "Debian-Security" && m.Security == nil:
			m.Security = u
		}
	}
	return m
}
