package provider

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// maxName is the longest instance name: pg-NAME-metrics must fit into the 63
// characters of a Service's name.
const maxName = 52

// The values of deletion_policy.
const (
	policyDelete = "delete"
	policyRetain = "retain"
)

// Patterns are compiled on use: they are small, and a package-level variable
// would be initialised by every start of the provider.
func dnsLabel() *regexp.Regexp  { return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`) }
func sqlName() *regexp.Regexp   { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`) }
func subdomain() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`) }

func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%q has %d characters, at most %d are allowed: the names of the instance's objects, such as pg-NAME-metrics, must fit 63", name, len(name), maxName)
	case !dnsLabel().MatchString(name):
		return fmt.Errorf("%q is not a DNS label: only a-z, 0-9 and - are allowed, and the first and last character must not be -", name)
	}
	return nil
}

func checkNamespace(namespace string) error {
	if len(namespace) > 63 || !dnsLabel().MatchString(namespace) {
		return fmt.Errorf("%q is not a namespace: at most 63 of a-z, 0-9 and -, and the first and last character must not be -", namespace)
	}
	return nil
}

// checkObjectName accepts what Kubernetes accepts as the name of most objects.
func checkObjectName(name string) error {
	if len(name) > 253 || !subdomain().MatchString(name) {
		return fmt.Errorf("%q is not the name of a Kubernetes object: at most 253 of a-z, 0-9, - and ., beginning and ending with a letter or digit", name)
	}
	return nil
}

func checkNetworkRef(ref string) error {
	namespace, name, qualified := strings.Cut(ref, "/")
	if !qualified {
		namespace, name = "", ref
	}
	if qualified && checkNamespace(namespace) != nil || checkObjectName(name) != nil {
		return fmt.Errorf(`%q does not name a NetworkAttachmentDefinition: write "namespace/name", or "name" for one in the instance's own namespace`, ref)
	}
	return nil
}

// checkImage accepts an object's name with or without a namespace, and any
// display name: Harvester shows names such as "Debian 12 (generic)".
func checkImage(image string) error {
	namespace, name, qualified := strings.Cut(image, "/")
	switch {
	case strings.TrimSpace(image) == "":
		return fmt.Errorf("no image is named; write the name of a VirtualMachineImage object or its display name")
	case qualified && strings.TrimSpace(name) == "":
		return fmt.Errorf("%q names a namespace but no image in it; write namespace/name", image)
	case qualified && checkNamespace(namespace) != nil:
		return fmt.Errorf("%q is not the namespace of an image: write namespace/name, name, or the display name", namespace)
	}
	return nil
}

func checkDBName(name string) error {
	if !sqlName().MatchString(name) {
		return fmt.Errorf("%q is not usable as a database name: at most 63 of a-z, 0-9 and _, not beginning with a digit", name)
	}
	if reservedDBName(name) {
		return fmt.Errorf("%q is a database that PostgreSQL makes for itself; choose another name", name)
	}
	return nil
}

func reservedDBName(name string) bool {
	return slices.Contains([]string{"postgres", "template0", "template1"}, name)
}

func checkUsername(name string) error {
	if !sqlName().MatchString(name) {
		return fmt.Errorf("%q is not usable as a role name: at most 63 of a-z, 0-9 and _, not beginning with a digit", name)
	}
	reserved := []string{"postgres", "postgres_exporter", "replicator", "public", "none"}
	if slices.Contains(reserved, name) || strings.HasPrefix(name, "pg_") {
		return fmt.Errorf("%q is reserved: pg_* and %s belong to PostgreSQL or to the service itself; choose another name", name, strings.Join(reserved, ", "))
	}
	return nil
}

// checkPassword never quotes the password.
func checkPassword(password string) error {
	switch {
	case len(password) < 8 || len(password) > 128:
		return fmt.Errorf("the password has %d bytes; 8 to 128 are needed", len(password))
	case strings.ContainsAny(password, "\r\n\x00"):
		return fmt.Errorf("the password holds a line break or a NUL, which clients cannot send or files cannot hold; leave it out")
	}
	return nil
}

// defaultDBName is the database of an instance that names none: the instance's
// name in SQL's alphabet.
func defaultDBName(instance string) string {
	name := strings.ReplaceAll(instance, "-", "_")
	if reservedDBName(name) || name[0] >= '0' && name[0] <= '9' {
		return "db_" + name
	}
	return name
}

// sameNetwork compares two references seen from an instance's namespace.
func sameNetwork(namespace, a, b string) bool {
	return qualified(namespace, a) == qualified(namespace, b)
}

// sameImage compares two ways to name an image: without a namespace it is
// looked up in "default".
func sameImage(a, b string) bool {
	return qualified("default", a) == qualified("default", b)
}

func qualified(namespace, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// checkHostAddress accepts the address of one host with its prefix length, in
// the one spelling that the cluster gives back.
func checkHostAddress(s string) error {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return fmt.Errorf("%q is not an address with a prefix length, such as 10.50.0.42/24", s)
	}
	if prefix.String() != s {
		return fmt.Errorf("%q must be written %s", s, prefix)
	}
	if err := usable(prefix.Addr()); err != nil {
		return err
	}
	short := prefix.Addr().Is4() && prefix.Bits() < 31 || prefix.Addr().Is6() && prefix.Bits() < 127
	switch {
	case prefix.Bits() == 0:
		return fmt.Errorf("%q has no network: the prefix length is 0; write the length of the network's prefix", s)
	case short && prefix.Masked().Addr() == prefix.Addr():
		return fmt.Errorf("%q is the network itself; write the address of a host in it", s)
	case short && prefix.Addr().Is4() && !prefix.Contains(prefix.Addr().Next()):
		return fmt.Errorf("%q is the network's broadcast address; write that of a host in it", s)
	}
	return nil
}

func checkAddress(s string) error {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return fmt.Errorf("%q is not an IP address, such as 10.50.0.1", s)
	}
	if addr.String() != s {
		return fmt.Errorf("%q must be written %s", s, addr)
	}
	return usable(addr)
}

func usable(addr netip.Addr) error {
	if addr.Zone() != "" || addr.Is4In6() || addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() || addr.IsLinkLocalUnicast() {
		return fmt.Errorf("%s cannot serve a host on a network: it is a loopback, link-local, multicast, mapped or unspecified address; write one of the network", addr)
	}
	return nil
}

// checkGateway compares two valid values of a static network.
func checkGateway(address, gateway string) error {
	prefix, err := netip.ParsePrefix(address)
	if err != nil {
		return nil //nolint:nilerr // the address has an error of its own
	}
	addr, err := netip.ParseAddr(gateway)
	if err != nil {
		return nil //nolint:nilerr // the gateway has an error of its own
	}
	switch {
	case addr == prefix.Addr():
		return fmt.Errorf("gateway %s is the instance's own address; write the router's", gateway)
	case !prefix.Contains(addr):
		return fmt.Errorf("gateway %s is outside the network %s of address %s; write the router's address in it", gateway, prefix.Masked(), address)
	}
	return nil
}
