package stack

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/process"
)

// spec says how to start a piece.
func (s *Stack) spec(name string, command ...string) process.Spec {
	return process.Spec{Name: name, RunDir: s.runDir(), Log: s.dir.Log(name), Command: command}
}

func (s *Stack) port(use string) string { return strconv.Itoa(s.lab.Ports[use]) }

func (s *Stack) startEtcd(ctx context.Context) error {
	client, peer := "http://127.0.0.1:"+s.port("etcd"), "http://127.0.0.1:"+s.port("etcd-peer")
	spec := s.spec("etcd", filepath.Join(s.cache, "debs", "etcd-server", "usr", "bin", "etcd"),
		"--data-dir", s.dir.Path("etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer,
		// A lab that loses its power has nothing worth keeping.
		"--unsafe-no-fsync")
	return s.piece(ctx, spec, s.answers(client+"/health", "true"))
}

func (s *Stack) startAPIServer(ctx context.Context) error {
	spec := s.spec("kube-apiserver", s.binary("controlplane"), "kube-apiserver",
		"--etcd-servers=http://127.0.0.1:"+s.port("etcd"),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+s.port("apiserver"),
		"--cert-dir="+s.dir.PKI(""),
		"--tls-cert-file="+s.dir.PKI("apiserver.crt"), "--tls-private-key-file="+s.dir.PKI("apiserver.key"),
		"--client-ca-file="+s.dir.PKI("ca.crt"), "--token-auth-file="+s.dir.PKI("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.dir.PKI("sa.key"), "--service-account-signing-key-file="+s.dir.PKI("sa.key"),
		"--service-cluster-ip-range=10.53.0.0/16",
		"--requestheader-client-ca-file="+s.dir.PKI("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+s.dir.PKI("front-proxy.crt"), "--proxy-client-key-file="+s.dir.PKI("front-proxy.key"),
		// For `kubectl logs`: the node agent plays the kubelet.
		"--kubelet-client-certificate="+s.dir.PKI("kubelet-client.crt"), "--kubelet-client-key="+s.dir.PKI("kubelet-client.key"),
		"--kubelet-certificate-authority="+s.dir.PKI("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=RBAC", "--allow-privileged=true",
		// Without it a pod would need a service account's token, and a kubelet to mount it.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none")
	return s.piece(ctx, spec, s.answers(s.lab.URL("apiserver")+"/readyz", "ok"))
}

func (s *Stack) startControllerManager(ctx context.Context) error {
	kubeconfig := s.dir.PKI("admin.kubeconfig")
	spec := s.spec("kube-controller-manager", s.binary("controlplane"), "kube-controller-manager",
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+s.port("kcm"),
		"--tls-cert-file="+s.dir.PKI("apiserver.crt"), "--tls-private-key-file="+s.dir.PKI("apiserver.key"),
		"--service-account-private-key-file="+s.dir.PKI("sa.key"), "--root-ca-file="+s.dir.PKI("ca.crt"),
		// Its binder loses many a race for a new claim and tries again only then (15 s).
		"--pvclaimbinder-sync-period=1s")
	return s.piece(ctx, spec, s.answers(s.lab.URL("kcm")+"/healthz", "ok"))
}

func (s *Stack) startVirtAPI(ctx context.Context) error {
	spec := s.spec("virt-api", s.binary("virt-api"),
		"--kubeconfig="+s.dir.PKI("virt-api.kubeconfig"), "--listen=127.0.0.1", "--port="+s.port("virt-api"),
		"--console-server-port="+s.port("virt-handler"),
		"--tls-cert-file="+s.dir.PKI("virt-api.crt"), "--tls-key-file="+s.dir.PKI("virt-api.key"),
		"--handler-cert-file="+s.dir.PKI("virt-handler-client.crt"), "--handler-key-file="+s.dir.PKI("virt-handler-client.key"))
	return s.piece(ctx, spec, s.answers(s.lab.URL("virt-api")+"/healthz", "ok"))
}

func (s *Stack) startVirtController(ctx context.Context) error {
	const image = "registry.invalid/" // nothing here pulls an image
	spec := s.spec("virt-controller", s.binary("controlplane"), "virt-controller",
		"--kubeconfig="+s.dir.PKI("virt-controller.kubeconfig"), "--listen=127.0.0.1", "--port="+s.port("virt-controller"),
		"--launcher-image="+image+"virt-launcher:v1.7.0", "--exporter-image="+image+"virt-exportserver:v1.7.0",
		"--prom-cert-file="+s.dir.PKI("virt-api.crt"), "--prom-key-file="+s.dir.PKI("virt-api.key"),
		// It is alone, and ends when a busy host lets it renew its lease too late.
		"--leader-elect-lease-duration=10m", "--leader-elect-renew-deadline=8m")
	return s.piece(ctx, spec, s.answers(s.lab.URL("virt-controller")+"/leader", "true"))
}

func (s *Stack) startHarvester(ctx context.Context) error {
	spec := s.spec("harvester", s.binary("controlplane"), "harvester",
		"-kubeconfig", s.dir.PKI("harvester.kubeconfig"), "-port", s.port("webhook"), "-ca", s.dir.PKI("ca.crt"),
		"-cert", s.dir.PKI("harvester-webhook.crt"), "-key", s.dir.PKI("harvester-webhook.key"))
	registered := s.lab.URL("apiserver") + "/apis/admissionregistration.k8s.io/v1/"
	validator := s.answers(registered+"validatingwebhookconfigurations/harvester-validator", "validator.harvesterhci.io")
	mutator := s.answers(registered+"mutatingwebhookconfigurations/harvester-mutator", "mutator.harvesterhci.io")
	return s.piece(ctx, spec, func(ctx context.Context) error {
		if err := validator(ctx); err != nil {
			return err
		}
		return mutator(ctx)
	})
}

// startDaemon starts a command of the lab's own binary, which works on the
// lab's folder.
func (s *Stack) startDaemon(ctx context.Context, name string, ready func(context.Context) error) error {
	return s.piece(ctx, s.spec(name, s.binary("lab"), name, "-dir", string(s.dir)), ready)
}
