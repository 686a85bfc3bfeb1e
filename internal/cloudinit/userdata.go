package cloudinit

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	header        = "#cloud-config\n"
	documentPath  = "/etc/dbaas/config.json"
	secretFolder  = "/run/dbaas/secret/"
	delimiter     = "END_OF_FILE"
	secretMode    = "0600"
	plainMode     = "0644"
	scriptMode    = "0755"
	partsFolder   = "/etc/dbaas/parts/"
	systemdFolder = "/etc/systemd/system/"
)

//go:embed guest
var guest embed.FS

// userData is the #cloud-config. Only bootcmd runs at every boot; write_files,
// runcmd and packages do not, and minimal images lack their modules.
type userData struct {
	// Bootcmd holds one string: an item that is a list would become a command
	// line, which every user of the machine may see.
	Bootcmd    []string `json:"bootcmd"`
	DisableEC2 bool     `json:"disable_ec2_metadata"`
	Hostname   string   `json:"hostname"`
	// Locale is one that needs no generating: cloud-init's default makes
	// cloud-config.service fail on images without the locales package.
	Locale string `json:"locale"`
}

// A file is written into the guest at every boot.
type file struct{ path, mode, content string }

// UserData renders the document that makes a machine the database of c. With
// bootstrap material it is the document of a first boot (or, with a verifier
// alone, of a rotation of the password), without it the one that stays.
func UserData(c Config, b *Bootstrap) ([]byte, error) {
	c = c.canonical()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("render user data: %w", err)
	}
	files, err := scripts()
	if err != nil {
		return nil, err
	}
	text, err := marshalDocument(c)
	if err != nil {
		return nil, err
	}
	files = append(files, file{documentPath, plainMode, text}, file{"/etc/dbaas/bootstrap.env", plainMode, environment(c)})
	if b != nil {
		if err := b.validate(); err != nil {
			return nil, fmt.Errorf("render user data: %w", err)
		}
		files = append(files, secrets(*b)...)
	}
	command, err := bootcmd(files)
	if err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(userData{Bootcmd: []string{command}, DisableEC2: true, Hostname: c.Hostname, Locale: "C.UTF-8"})
	if err != nil {
		return nil, fmt.Errorf("marshal user data: %w", err)
	}
	return append([]byte(header), out...), nil
}

// ParseUserData reads the configuration back from a document of UserData.
func ParseUserData(b []byte) (Config, error) {
	files, err := parseFiles(b)
	if err != nil {
		return Config{}, err
	}
	text, ok := files[documentPath]
	if !ok {
		return Config{}, fmt.Errorf("parse user data: it writes no %s, so this provider has not made it", documentPath)
	}
	return unmarshalDocument(text)
}

// HasBootstrap says whether a document of UserData still carries bootstrap
// material. Of one that somebody has damaged the worst is assumed.
func HasBootstrap(b []byte) bool {
	files, err := parseFiles(b)
	if err != nil {
		return bytes.Contains(b, []byte("put "+secretFolder))
	}
	for path := range files {
		if strings.HasPrefix(path, secretFolder) {
			return true
		}
	}
	return false
}

// scripts returns the files that are the same in every document. The result is
// sorted by source, so that a document depends on its values alone.
func scripts() ([]file, error) {
	var files []file
	entries, err := guest.ReadDir("guest")
	if err != nil {
		return nil, fmt.Errorf("list guest files: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		content, err := guest.ReadFile("guest/" + name)
		if err != nil {
			return nil, fmt.Errorf("read guest file: %w", err)
		}
		switch {
		case name == "put.sh": // the head of the bootcmd itself
		case name == "bootstrap.sh":
			files = append(files, file{"/etc/dbaas/" + name, scriptMode, string(content)})
		case name == "dbaas-ready.sh":
			files = append(files, file{"/usr/local/sbin/dbaas-ready", scriptMode, string(content)})
		case strings.HasSuffix(name, ".service"):
			files = append(files, file{systemdFolder + name, plainMode, string(content)})
		case strings.HasSuffix(name, ".rules"):
			files = append(files, file{"/etc/udev/rules.d/" + name, plainMode, string(content)})
		default:
			files = append(files, file{partsFolder + name, plainMode, string(content)})
		}
	}
	return files, nil
}

func secrets(b Bootstrap) []file {
	var files []file
	if b.CAKey != "" {
		files = append(files, file{secretFolder + "ca.key", secretMode, strings.TrimSpace(b.CAKey) + "\n"})
	}
	if b.Verifier != "" {
		files = append(files, file{secretFolder + "verifier", secretMode, b.Verifier + "\n"})
	}
	return files
}

// bootcmd renders the one command: put.sh, then every file as a here-document.
func bootcmd(files []file) (string, error) {
	head, err := guest.ReadFile("guest/put.sh")
	if err != nil {
		return "", fmt.Errorf("read guest file: %w", err)
	}
	var b strings.Builder
	b.Write(head)
	for _, f := range files {
		if !strings.HasSuffix(f.content, "\n") || strings.Contains("\n"+f.content, "\n"+delimiter+"\n") {
			return "", fmt.Errorf("render %s: it cannot stand in a here-document", f.path)
		}
		fmt.Fprintf(&b, "put %s %s <<'%s'\n%s%s\n", f.path, f.mode, delimiter, f.content, delimiter)
	}
	b.WriteString("start\n")
	return b.String(), nil
}

// parseFiles returns the files that a document writes. Its errors quote nothing
// of the document, which may hold secrets.
func parseFiles(b []byte) (map[string]string, error) {
	if !bytes.HasPrefix(b, []byte(header)) {
		return nil, errors.New("parse user data: it is not a #cloud-config")
	}
	var parsed userData
	if err := yaml.Unmarshal(b, &parsed); err != nil || len(parsed.Bootcmd) != 1 {
		return nil, errors.New("parse user data: it is not YAML with one bootcmd, so this provider has not made it")
	}
	begin := regexp.MustCompile(`^put (\S+) [0-7]{4} <<'` + delimiter + `'\n$`)
	files := map[string]string{}
	path, content := "", strings.Builder{}
	for line := range strings.Lines(parsed.Bootcmd[0]) {
		switch found := begin.FindStringSubmatch(line); {
		case path == "" && found != nil:
			path = found[1]
		case path != "" && line == delimiter+"\n":
			files[path] = content.String()
			path = ""
			content.Reset()
		case path != "":
			content.WriteString(line)
		}
	}
	if path != "" {
		return nil, fmt.Errorf("parse user data: %s has no end", path)
	}
	return files, nil
}
