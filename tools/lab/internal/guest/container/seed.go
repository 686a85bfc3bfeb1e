package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"sigs.k8s.io/yaml"
)

// device is the name of the guest's card i, as a KubeVirt machine would name it.
func device(i int) string { return fmt.Sprintf("enp%ds0", i+1) }

// writeSeed fills a folder with the NoCloud files.
func writeSeed(folder string, s *guest.Seed, nics []guest.NIC) error {
	network, err := translate(s.NetworkData, nics)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create seed folder: %w", err)
	}
	for name, content := range map[string][]byte{
		"meta-data": s.MetaData(), "user-data": s.UserData, "network-config": network,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("write seed: %w", err)
		}
	}
	return nil
}

// translate makes network data match the guest's cards by name. A veth has no
// permanent hardware address, and that is what netplan compares `macaddress`
// with. Without network data cloud-init would fall back to such a match, too.
func translate(data []byte, nics []guest.NIC) ([]byte, error) {
	config := map[string]any{}
	if len(strings.TrimSpace(string(data))) == 0 {
		if len(nics) > 0 {
			first := map[string]any{"dhcp4": true}
			config = map[string]any{"version": 2, "ethernets": map[string]any{device(0): first}}
		}
		return yaml.Marshal(config)
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("parse network data: %w", err)
	}
	root := config
	if inner, ok := config["network"].(map[string]any); ok {
		root = inner
	}
	ethernets, _ := root["ethernets"].(map[string]any)
	changed := false
	for _, value := range ethernets {
		card, _ := value.(map[string]any)
		match, _ := card["match"].(map[string]any)
		mac, _ := match["macaddress"].(string)
		for i, nic := range nics {
			if mac != "" && strings.EqualFold(mac, nic.MAC) {
				delete(match, "macaddress")
				match["name"] = device(i)
				delete(card, "set-name") // done by udev, which a container has not
				changed = true
			}
		}
	}
	if !changed {
		return data, nil
	}
	return yaml.Marshal(config)
}

// forget makes cloud-init read the seed again at this boot. It would trust its
// cache where the seed is a folder with the same instance-id; KubeVirt's is a
// disk, and that it reads at every boot. What ran once stays done.
func forget(upper string) error {
	caches, err := filepath.Glob(filepath.Join(upper, "var/lib/cloud/instances/*/obj.pkl"))
	if err != nil {
		return fmt.Errorf("find cloud-init's cache: %w", err)
	}
	for _, cache := range caches {
		if err := os.Remove(cache); err != nil {
			return fmt.Errorf("remove cloud-init's cache: %w", err)
		}
	}
	return nil
}
