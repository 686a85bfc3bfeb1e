package cloudinit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// environment renders /etc/dbaas/bootstrap.env, which the guest's scripts read:
// the configuration in the shell's words, one variable a line.
func environment(c Config) string {
	monitoring, readers := "", []string(nil)
	if c.Monitoring != nil {
		monitoring, readers = "yes", orEvery(c.Monitoring.AllowedCIDRs)
	}
	var b strings.Builder
	b.WriteString("# The configuration of this database, without secrets. Written at every boot.\n")
	for _, variable := range [][2]string{
		{"HASH", c.Hash()},
		{"INSTANCE_ID", c.InstanceID},
		{"HOSTNAME", c.Hostname},
		{"DNS_NAMES", strings.Join(c.DNSNames, " ")},
		{"MAJOR", c.EngineVersion},
		{"PORT", strconv.FormatInt(c.Port, 10)},
		{"MAX_CONNECTIONS", strconv.FormatInt(c.MaxConnections, 10)},
		{"ROLE", c.MasterUsername},
		{"DATABASE", c.DBName},
		{"DATA_GIB", strconv.FormatInt(c.DataGiB, 10)},
		{"CIDRS", strings.Join(orEvery(c.AllowedCIDRs), " ")},
		{"EXTENSIONS", strings.Join(c.Extensions, " ")},
		{"PARAMETERS", settings(c.Parameters, c.Extensions)},
		{"MONITORING", monitoring},
		{"MONITORING_CIDRS", strings.Join(readers, " ")},
		{"SSH_KEYS", strings.Join(c.SSHPublicKeys, "\n")},
		{"APT_PROXY", c.PackageSource.APTProxy},
		{"PGDG_MIRROR", c.PackageSource.PGDGMirror},
		{"CA_CERT", strings.TrimSuffix(c.CACert, "\n")},
	} {
		fmt.Fprintf(&b, "DBAAS_%s=%s\n", variable[0], quote(variable[1]))
	}
	return b.String()
}

func orEvery(networks []string) []string {
	if networks == nil {
		return everyNetwork()
	}
	return networks
}

// preloadSetting names the libraries that PostgreSQL loads at its start.
const preloadSetting = "shared_preload_libraries"

// withPreload adds the libraries that the extensions do not work without to
// those that the owner wants.
func withPreload(parameters map[string]string, extensions []string) map[string]string {
	const needed = "pg_stat_statements"
	if !slices.Contains(extensions, needed) {
		return parameters
	}
	all := map[string]string{preloadSetting: needed}
	for name, value := range parameters {
		if !strings.EqualFold(name, preloadSetting) {
			all[name] = value
			continue
		}
		libraries := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.Contains(libraries, needed) {
			libraries = append([]string{needed}, libraries...)
		}
		all[preloadSetting] = strings.Join(libraries, ",")
	}
	return all
}

// settings renders lines of postgresql.conf.
func settings(parameters map[string]string, extensions []string) string {
	parameters = withPreload(parameters, extensions)
	escape := strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`, "\r", `\r`)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, escape.Replace(parameters[name]))
	}
	return b.String()
}

// quote renders one word of bash, in printable ASCII and on one line.
func quote(value string) string {
	if !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, c := range []byte(value) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			// Always three octal digits: a digit that follows must not join in.
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}
