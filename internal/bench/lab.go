package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/faultproxy"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

const namespace = "tenant-acme"

// lab is a running lab.
type lab struct {
	dir   string
	admin dynamic.Interface
}

func openLab(dir string) (*lab, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("open the lab (make lab-up LAB_DIR=%s): %w", dir, err)
	}
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the lab: %w", err)
	}
	return &lab{dir: dir, admin: admin}, nil
}

// proxy is a fault proxy: here it delays and records.
type proxy struct {
	*faultproxy.Proxy
	config *rest.Config // the tenant's
}

type request = faultproxy.Request

func (b *bench) startProxy(name string) (*proxy, error) {
	p, err := faultproxy.Start("bin/lab", b.lab.dir, filepath.Join(b.dir, name+".kubeconfig"))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &proxy{p, config}, nil
}

// reset forgets the record; from now on each request takes so much longer.
func (p *proxy) reset(delay time.Duration) error {
	if err := p.Reset(); err != nil || delay == 0 {
		return err
	}
	return p.Inject(faultproxy.Rule{Action: "delay", Delay: delay.String(), Times: -1})
}

// store is what the provider uses.
func (p *proxy) store() (*instance.Store, error) {
	client, err := cluster.New(cluster.Config{Paths: []string{p.Kubeconfig}}, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	return instance.New(client, instance.Options{}), nil
}

// spec is the smallest instance.
func spec(name string) instance.Spec {
	return instance.Spec{
		Namespace: namespace, Name: name, ClassName: "db.t3.micro", Class: class.Default()["db.t3.micro"],
		StorageGiB: 1, NetworkRef: "default/vm-net-100", EngineVersion: "15", DBName: strings.ReplaceAll(name, "-", "_"),
		MasterUsername: "dbadmin", Port: 5432, OSImage: "default/debian-12", StorageType: "longhorn", Running: true,
		Master: instance.Master{Mode: instance.PasswordGenerated},
	}
}
