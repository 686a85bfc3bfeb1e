package guesttest

import (
	"fmt"
	"strings"
	"testing"
)

// plainLab names the folder of a lab whose image is as a distribution makes it.
const plainLab = "DBAAS_PLAIN_LAB_DIR"

// TestStockImage makes the database of an image that has neither PostgreSQL nor
// a guest agent, from a package source that the owner names.
func TestStockImage(t *testing.T) {
	l := useLab(t, plainLab, "container")
	i := l.newInstance(t, "stock", args{"package_source": fmt.Sprintf(`{ apt_proxy = "http://%s:%d" }`, l.address(1), l.packages)})
	i.apply(t)
	c := i.client(t)
	i.says(t, "stock", "step=install state=running", "step=install state=ok")
	c.answers(t, "create table kept (i int); insert into kept values (1); select current_setting('server_version_num')::int / 10000", "15")
	if clusters, _ := i.inside(t, "stock", "pg_lsclusters", "-h"); strings.Count(clusters, "\n") != 0 || !strings.HasPrefix(clusters, "15 ") {
		t.Errorf("the package made clusters of its own: %s", clusters)
	}
	if proxy, _ := i.inside(t, "stock", "apt-config", "dump", "Acquire::http"); !strings.Contains(proxy, fmt.Sprintf(":%d", l.packages)) || strings.Contains(proxy, "/usr/lib/lab") {
		t.Errorf("apt was not given the proxy: %s", proxy)
	}
	// What is installed needs no package source any more.
	l.tool(t, "knob", "package-proxy=down")
	t.Cleanup(func() { l.restore(t, "package-proxy") })
	l.restart(t, "stock")
	c.soon(t, "select count(*) from kept", "1")
	l.ready(t, "stock")
	i.unchanged(t)
}
