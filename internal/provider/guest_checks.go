package provider

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// This file checks the arguments that the guest applies.

// ownedParameters are patterns of the settings that the provider makes itself,
// or that would take the database or its data away from it.
func ownedParameters() []string {
	return []string{
		// Where it listens, and how one logs in.
		"listen_addresses", "port", "max_connections", "superuser_reserved_connections", "reserved_connections",
		"unix_socket_*", "bonjour*", "ssl*", "password_encryption", "krb_*", "gss_*", "authentication_timeout", "db_user_namespace",
		// Where things are.
		"*_file", "*_directory", "*_directories", "*_keyfile", "dynamic_library_path", "include*",
		// What it runs or loads; extensions bring their libraries.
		"*_command", "*_library", "*_libraries", "jit_provider",
		// Archiving, restoring, replicating.
		"archive_*", "recovery_*", "primary_*", "synchronous_standby_names",
		// The guest reads PostgreSQL's messages where they are.
		"logging_collector", "log_destination", "event_source",
		// With one of these a power cut may lose the data.
		"fsync", "full_page_writes", "zero_damaged_pages", "ignore_checksum_failure",
	}
}

func checkParameter(name, value string) error {
	if err := cloudinit.CheckParameterName(name); err != nil {
		return err
	}
	for _, pattern := range ownedParameters() {
		if owned, err := path.Match(pattern, strings.ToLower(name)); err == nil && owned {
			return fmt.Errorf("%q is set by the provider or would endanger the database (%s); leave it out", name, pattern)
		}
	}
	if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		return fmt.Errorf("the value of %q holds a NUL or is not UTF-8, which postgresql.conf cannot hold; write it without", name)
	}
	return nil
}

// extensions are those of PostgreSQL's contrib package that every supported
// version has and that reach nothing outside of the database.
func extensions() []string {
	return []string{
		"amcheck", "autoinc", "bloom", "btree_gin", "btree_gist", "citext", "cube", "dblink", "dict_int", "dict_xsyn", "earthdistance",
		"fuzzystrmatch", "hstore", "insert_username", "intarray", "isn", "lo", "ltree", "moddatetime", "pg_buffercache", "pg_freespacemap",
		"pg_prewarm", "pg_stat_statements", "pg_trgm", "pg_visibility", "pgcrypto", "pgrowlocks", "pgstattuple", "postgres_fdw", "refint",
		"seg", "sslinfo", "tablefunc", "tcn", "tsm_system_rows", "tsm_system_time", "unaccent", "uuid-ossp",
	}
}

func checkExtension(name string) error {
	if !slices.Contains(extensions(), name) {
		return fmt.Errorf("%q is not an extension that can be chosen; those are %s", name, strings.Join(extensions(), ", "))
	}
	return nil
}

// checkCIDR wants the one spelling that is compared later.
func checkCIDR(s string) error {
	prefix, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a network such as 10.0.0.0/8 or fd00::/8; one host is written 10.0.0.7/32", s)
	case prefix.Addr().Is4In6():
		return fmt.Errorf("%q is IPv4 written as IPv6; it must be written as a network of IPv4", s)
	case prefix.Masked().String() != s:
		return fmt.Errorf("%q must be written %s", s, prefix.Masked())
	}
	return nil
}

func checkDNSName(name string) error {
	if _, err := netip.ParseAddr(name); err == nil {
		return fmt.Errorf("%q is an address: the certificate is valid for every address of the instance anyway; leave it out", name)
	}
	labels := strings.Split(strings.TrimPrefix(name, "*."), ".")
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	if len(name) > 253 || slices.ContainsFunc(labels, func(l string) bool { return !label.MatchString(l) }) {
		return fmt.Errorf("%q is not a DNS name in lower case, such as orders.example.com or *.example.com", name)
	}
	return nil
}

// checkSSHKey never quotes the key: somebody may have taken the private one.
func checkSSHKey(key string) error {
	if strings.Contains(key, "PRIVATE KEY") {
		return fmt.Errorf("a private key stands where the public one belongs; write the line of the .pub file")
	}
	_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(key))
	plain := !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) && !strings.Contains(key, "  ") && strings.TrimSpace(key) == key
	switch {
	case err != nil || len(rest) > 0 || !plain:
		return fmt.Errorf("an element is not one line as in authorized_keys: type, key and comment in ASCII with single spaces, such as \"ssh-ed25519 AAAA… somebody\"; trimspace() removes the newline of a file")
	case len(options) > 0:
		return fmt.Errorf("a key has options in front of it; write only type, key and comment")
	}
	return nil
}

func checkSource(value string) error { return cloudinit.CheckSource(value) }

// checkTag accepts what Harvester can show: the tag becomes a label.
func checkTag(key, value string) error {
	if len(key) > 63 || !regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`).MatchString(key) {
		return fmt.Errorf("%q is not usable as the key of a tag: at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", key)
	}
	if len(value) > 63 || !regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`).MatchString(value) {
		return fmt.Errorf("the tag %q cannot have the value %q: at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", key, value)
	}
	return nil
}
