package guesttest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noSecrets looks for the master password and the CA's key everywhere in the
// running guest and in what the cluster gives to it.
func (l *life) noSecrets(t *testing.T, seed bool) {
	vmi, err := l.vmi(t.Context(), l.name)
	must(t, err)
	root := "/proc/" + l.first(t, string(vmi.GetUID())) + "/root"
	const keyFile = "/var/lib/postgresql/.dbaas/ca.key"
	pem, err := os.ReadFile(root + keyFile)
	must(t, err)
	needles := map[string][]byte{"CA key": bytes.Split(pem, []byte("\n"))[1], "password": []byte(l.attributes(t)["master_password"].(string))}
	// The seed disk of the first boot stays attached until the next stop.
	want := []string{"CA key in " + keyFile}
	if seed {
		want = append(want, "CA key in /var/lib/cloud/seed/nocloud/user-data")
	}
	got := append(inFiles(t, root, needles), inProcesses(t, root, needles)...)
	journal, _ := l.inside(t, l.name, "journalctl", "--no-pager", "--output=cat")
	for place, text := range map[string]string{
		"the journal": journal, "the console": l.console(vmi),
		"the Secret's userdata":    string(l.secret(t, "pg-life-cloudinit", "userdata")),
		"the Secret's networkdata": string(l.secret(t, "pg-life-cloudinit", "networkdata")),
		"the Secret's ca_key":      string(l.secret(t, "pg-life-credentials", "ca_key")),
	} {
		for name, needle := range needles {
			if strings.Contains(text, string(needle)) {
				got = append(got, name+" in "+place)
			}
		}
		if strings.Contains(text, "SCRAM-SHA-256$") {
			got = append(got, "a verifier in "+place)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(journal) < 1000 {
		t.Errorf("the journal has %d bytes: was it read?", len(journal))
	}
}

// inFiles looks into every file of the guest that is not of the image's programs.
func inFiles(t *testing.T, root string, needles map[string][]byte) []string {
	t.Helper()
	var found []string
	files := 0
	err := filepath.WalkDir(root+"/", func(path string, entry fs.DirEntry, err error) error {
		inGuest := "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
			return nil
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"/proc", "/sys", "/dev", "/usr/lib", "/usr/share", "/usr/bin"}, inGuest):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files++
		for name, needle := range needles {
			if bytes.Contains(content, needle) {
				found = append(found, name+" in "+inGuest)
			}
		}
		return nil
	})
	must(t, err)
	if files < 1000 {
		t.Errorf("looked into %d files only", files)
	}
	return found
}

func inProcesses(t *testing.T, root string, needles map[string][]byte) []string {
	t.Helper()
	var found []string
	for _, kind := range []string{"cmdline", "environ"} {
		paths, err := filepath.Glob(root + "/proc/[0-9]*/" + kind)
		must(t, err)
		if len(paths) < 5 {
			t.Errorf("looked at %d processes only", len(paths))
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			for name, needle := range needles {
				if bytes.Contains(content, needle) {
					found = append(found, fmt.Sprintf("%s in the %s of %s", name, kind, content))
				}
			}
		}
	}
	return found
}
