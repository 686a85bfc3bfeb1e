package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Uses are what a lab needs a port for.
func Uses() []string {
	return []string{
		"etcd", "etcd-peer", "apiserver", "virt-api", "virt-controller", "kcm", "webhook",
		"virt-handler", "kubelet", "images", "packages", "proxy", "proxy-control",
	}
}

// NewPorts finds a free loopback port for every use. They lie below the range
// from which the kernel takes ports for outgoing connections, so that none is
// taken between now and the moment its piece listens on it.
func NewPorts(ctx context.Context) (map[string]int, error) {
	const low, high, tries = 20000, 32768, 1000
	ports, listen := map[string]int{}, net.ListenConfig{}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, use := range Uses() {
		for range tries {
			port := low + rand.IntN(high-low)
			l, err := listen.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				held = append(held, l)
				ports[use] = port
				break
			}
		}
		if ports[use] == 0 {
			return nil, errors.New("find free ports: none found")
		}
	}
	return ports, nil
}

// URL is where the piece that listens on the port for use is reached.
func (l *Lab) URL(use string) string {
	return fmt.Sprintf("https://127.0.0.1:%d", l.Ports[use])
}
