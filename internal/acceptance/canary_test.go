package acceptance

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forms are how a secret may look where it does not belong.
func forms(secret string, salts []salt) map[string]string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		panic(err)
	}
	found := map[string]string{
		"raw": secret, "JSON": strings.Trim(string(quoted), `"`), "hex": hex.EncodeToString([]byte(secret)),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "Go": strings.Trim(strconv.Quote(secret), `"`),
	}
	// Inside of a longer text base64 depends on where the secret begins; what
	// its neighbours have a share in is left out.
	for shift := range 3 {
		all := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
		found[fmt.Sprintf("base64+%d", shift)] = all[(shift*8+5)/6 : (shift+len(secret))*8/6]
	}
	for i, s := range salts {
		salted, err := pbkdf2.Key(sha256.New, secret, s.value, s.iterations, sha256.Size)
		if err != nil {
			panic(err)
		}
		found[fmt.Sprintf("salted %d, base64", i)] = base64.StdEncoding.EncodeToString(salted)
		found[fmt.Sprintf("salted %d, hex", i)] = hex.EncodeToString(salted)
		found[fmt.Sprintf("salted %d", i)] = string(salted)
	}
	return found
}

// A search that cannot find proves nothing.
func TestFormsAreThoseThatASecretTakes(t *testing.T) {
	const secret = `s3cret "&/ é`
	salted, err := pbkdf2.Key(sha256.New, secret, []byte("salt"), 4096, sha256.Size)
	must(t, err)
	texts := []string{
		secret, jsonOf(map[string]string{"password": secret}), fmt.Sprintf("%q", secret), fmt.Sprintf("%x", secret),
		"https://u:" + url.QueryEscape(secret) + "@x", "https://x/" + url.PathEscape(secret), string(salted), base64.StdEncoding.EncodeToString(salted),
	}
	for _, before := range []string{"", "a", "ab", "abc"} {
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(before+secret+"tail")), base64.StdEncoding.EncodeToString([]byte(before+secret)))
	}
	for _, text := range texts {
		found := false
		for _, form := range forms(secret, []salt{{[]byte("salt"), 4096}}) {
			found = found || strings.Contains(text, form)
		}
		if !found {
			t.Errorf("not found in %q", text)
		}
	}
}

// salt is what a SCRAM verifier was made with.
type salt struct {
	value      []byte
	iterations int
}

// verifiers collects the salts of all verifiers that a guest's document ever
// holds.
func (l *lab) verifiers(name string) func() []salt {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l.t.Cleanup(stop)
	watch, err := l.kube.CoreV1().Secrets(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name + "-cloudinit"})
	must(l.t, err)
	pattern := regexp.MustCompile(`SCRAM-SHA-256\$(\d+):([A-Za-z0-9+/=]+)\$`)
	var mutex sync.Mutex
	seen := map[string]salt{}
	go func() {
		for event := range watch.ResultChan() {
			secret, ok := event.Object.(*corev1.Secret)
			if !ok {
				continue
			}
			for _, found := range pattern.FindAllSubmatch(secret.Data["userdata"], -1) {
				iterations, _ := strconv.Atoi(string(found[1]))
				value, err := base64.StdEncoding.DecodeString(string(found[2]))
				if err != nil {
					continue
				}
				mutex.Lock()
				seen[string(found[2])] = salt{value, iterations}
				mutex.Unlock()
			}
		}
	}()
	return func() []salt {
		mutex.Lock()
		defer mutex.Unlock()
		var all []salt
		for _, s := range seen {
			all = append(all, s)
		}
		return all
	}
}

// objects are the contents of everything in the namespace except the Secret
// that the credentials belong in.
func (l *lab) objects(credentials string) map[string]string {
	l.t.Helper()
	found := map[string]string{}
	note := func(place string, content any) {
		text, err := json.Marshal(content)
		must(l.t, err)
		found[place] = string(text)
	}
	others := append(kinds(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, schema.GroupVersionResource{Version: "v1", Resource: "events"},
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"})
	for _, kind := range others {
		list, err := l.dynamic.Resource(kind).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
		must(l.t, err)
		for _, object := range list.Items {
			if object.GetName() == credentials {
				object.Object["data"] = nil
			}
			note(kind.Resource+"/"+object.GetName(), object.Object)
		}
	}
	secrets, err := l.kube.CoreV1().Secrets(namespace).List(context.Background(), metav1.ListOptions{})
	must(l.t, err)
	for i := range secrets.Items {
		for key, value := range secrets.Items[i].Data {
			if secrets.Items[i].Name != credentials {
				found["secrets/"+secrets.Items[i].Name+", key "+key] = string(value)
			}
		}
	}
	return found
}

// files are the contents of a folder, also inside of plan files.
func (c *cli) files() map[string]string {
	c.t.Helper()
	found := map[string]string{}
	must(c.t, filepath.WalkDir(c.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found[filepath.Base(path)] = string(content)
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil //nolint:nilerr // then it is no plan
		}
		for _, member := range archive.File {
			reader, err := member.Open()
			if err != nil {
				return err
			}
			inside, err := io.ReadAll(reader)
			if err != nil {
				return err
			}
			found[filepath.Base(path)+"/"+member.Name] = string(inside)
		}
		return nil
	}))
	return found
}

// TestCanary looks for passwords everywhere, in every form, after creates and
// rotations in all modes. Only the first mode puts them into state and plan.
func TestCanary(t *testing.T) {
	l := useLab(t)
	const first, second = `canary's "first" \ $(id) <&>`, `canary/second+word=`
	for mode, test := range map[string]struct {
		create, rotate args
		inState        bool
	}{
		"generated": {create: args{}, rotate: args{"password_rotation": "1"}, inState: true},
		"managed": {
			create: args{"manage_master_user_password": "true"},
			rotate: args{"manage_master_user_password": "true", "password_rotation": "1"},
		},
		"supplied": {
			create: args{"master_password_wo": "var.first", "master_password_wo_version": "1"},
			rotate: args{"master_password_wo": "var.second", "master_password_wo_version": "2"},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			l.t = t
			salts := l.verifiers("canary")
			variables := "\nvariable \"first\" {\n  type      = string\n  ephemeral = true\n}\n\nvariable \"second\" {\n  type      = string\n  ephemeral = true\n}\n"
			c := newProcessCLI(t, l.module("canary", test.create)+variables, "TF_VAR_first="+first, "TF_VAR_second="+second)
			var printed strings.Builder
			var passwords []string
			steps := func() {
				printed.WriteString(c.must("plan", "-input=false", "-no-color", "-out=plan.bin"))
				must(t, os.WriteFile(filepath.Join(c.dir, "plan.json"), []byte(c.must("show", "-json", "plan.bin")), 0o600))
				printed.WriteString(c.must("apply", "-input=false", "-no-color", "plan.bin"))
				must(t, os.WriteFile(filepath.Join(c.dir, "state.json"), []byte(c.must("show", "-json")), 0o600))
				passwords = append(passwords, string(l.credentials("canary").Data["admin_password"]))
			}
			steps()
			seen := l.objects("pg-canary-credentials")
			module := l.module("canary", test.rotate) + variables
			c.write(module)
			steps()
			for place, content := range l.objects("pg-canary-credentials") {
				seen["after the rotation, "+place] = content
			}
			// A run that fails tells what it was about.
			c.write(strings.Replace(module, `"db.t3.micro"`, `"db.t3.small"`, 1))
			l.inject(rule{Method: "PATCH", Path: "/virtualmachines/", Times: -1, Action: "answer", Status: 403})
			code, out := c.run("apply", "-auto-approve", "-input=false", "-no-color")
			if code == 0 {
				t.Error("the apply that was to fail succeeded")
			}
			printed.WriteString(out)
			l.reset()
			// A crash shows where each goroutine was, and with what.
			printed.WriteString(c.signalled(syscall.SIGQUIT, l, "canary", halted, "apply", "-auto-approve", "-input=false", "-no-color"))
			if !strings.Contains(printed.String(), "goroutine ") {
				t.Error("the crash left no trace")
			}
			c.write(module)
			printed.WriteString(c.must("destroy", "-auto-approve", "-input=false", "-no-color"))
			must(t, l.nothingLeft("canary")(nil))

			seen["printed"] = printed.String()
			maps.Copy(seen, c.files())
			if passwords[0] == passwords[1] || mode == "supplied" && (passwords[0] != first || passwords[1] != second) {
				t.Fatal("the passwords are not what was wanted")
			}
			if len(salts()) < 2 {
				t.Errorf("%d verifiers were seen, want those of both passwords", len(salts()))
			}
			if !strings.Contains(seen["trace.log"], "provider.terraform-provider-dbaas") {
				t.Error("the provider's log is not in the trace")
			}
			inState := regexp.MustCompile(`^(plan|state)\.json$|^plan\.bin/|^terraform\.tfstate`)
			found := false
			for place, content := range seen {
				for _, password := range passwords {
					for form, text := range forms(password, salts()) {
						if !strings.Contains(content, text) {
							continue
						}
						found = true
						if !test.inState || !inState.MatchString(place) {
							t.Errorf("%s holds a password (%s)", place, form)
						}
					}
				}
			}
			if found != test.inState {
				t.Errorf("a password was found in the state: %t, want %t", found, test.inState)
			}
		})
	}
}
