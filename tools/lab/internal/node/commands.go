package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// A Command is one thing to do to a machine or claim now.
type Command struct {
	// Do is reboot, cut, address or replace-claim.
	Do string `json:"do"`
	// Namespace and Name are those of the VirtualMachine or claim.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Address is the new address of the machine's first card (address).
	Address string `json:"address,omitempty"`
}

// Send asks the running node agent of a lab to do something and returns when it
// is done.
func Send(ctx context.Context, dir state.Dir, c Command) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	h := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket(dir))
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/command", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	resp, err := h.Do(req)
	if err != nil {
		return fmt.Errorf("ask the node agent: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(resp.Body)
	return errors.Join(err, errors.New(strings.TrimSpace(string(text))))
}

func socket(dir state.Dir) string { return dir.Path("run", "node.sock") }

// serveCommands listens for Send.
func serveCommands(ctx context.Context, dir state.Dir, c *cluster, ms *machines) error {
	if err := os.Remove(socket(dir)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove an old socket: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket(dir))
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /command", func(w http.ResponseWriter, r *http.Request) {
		var cmd Command
		err := json.NewDecoder(r.Body).Decode(&cmd)
		if err == nil {
			err = obey(r.Context(), cmd, c, ms)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return serve(ctx, s, func() error { return s.Serve(l) })
}

func obey(ctx context.Context, cmd Command, c *cluster, ms *machines) error {
	key := types.NamespacedName{Namespace: cmd.Namespace, Name: cmd.Name}
	if cmd.Do == "replace-claim" {
		return c.replaceClaim(ctx, key)
	}
	m := ms.named(key)
	if m == nil {
		return fmt.Errorf("%s %s: %w", cmd.Do, key, errNoMachine)
	}
	switch cmd.Do {
	case "reboot":
		return m.Reboot(ctx)
	case "cut":
		m.pullPlug(ms.log)
		return nil
	case "address":
		a, err := netip.ParseAddr(cmd.Address)
		if err != nil {
			return fmt.Errorf("give %s a new address: %w", key, err)
		}
		if len(m.spec.NICs) == 0 {
			return fmt.Errorf("give %s a new address: it has no network card", key)
		}
		ms.leases.set(m.spec.NICs[0].MAC, a)
		ms.backend.SetLease(m.spec.NICs[0].MAC, a)
		return nil
	}
	return fmt.Errorf("there is no command %q", cmd.Do)
}

// replaceClaim deletes a claim that its machine still wants, so that Harvester's
// controller makes a blank one of the same name. The webhook that forbids it is
// away meanwhile, and so is the protection of claims in use.
func (c *cluster) replaceClaim(ctx context.Context, key types.NamespacedName) error {
	claim := new(corev1.PersistentVolumeClaim)
	if err := c.live.Get(ctx, key, claim); err != nil {
		return fmt.Errorf("replace claim %s: %w", key, err)
	}
	if err := c.breakWebhooks(ctx, "removed"); err != nil {
		return err
	}
	err := c.dropClaim(ctx, claim)
	if restored := c.breakWebhooks(ctx, ""); restored != nil {
		err = errors.Join(err, restored)
	}
	if err != nil {
		return fmt.Errorf("replace claim %s: %w", key, err)
	}
	for {
		fresh := new(corev1.PersistentVolumeClaim)
		if err := c.live.Get(ctx, key, fresh); err == nil && fresh.UID != claim.UID {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("replace claim %s: no new one came: %w", key, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// dropClaim deletes the claim. The API server needs a moment to forget a webhook,
// so it tries for a while.
func (c *cluster) dropClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	enough := time.After(15 * time.Second)
	for {
		err := c.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
		if client.IgnoreNotFound(err) == nil {
			break
		}
		select {
		case <-enough:
			return err
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(c.Patch(ctx, claim, strip))
}
