package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// This file is the argument monitoring: its schema, its checks, its mapping,
// and what a plan makes of it.

const (
	defaultInterval = "15s"
	// dashboard is the place of examples/monitoring/dashboard.json in Grafana: its uid.
	dashboard = "dbaas-postgresql"
)

func instanceMonitoring() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Lets Prometheus read the database's metrics: an exporter in the guest, on port 9187, and on the cluster a Service with its Endpoints and a ServiceMonitor, " +
			"once the instance is available; see [the guide](../guides/monitoring.md). Default: off; `{}` switches it on. " +
			"Switching it on or off, or another `allowed_cidrs`, takes effect in place and restarts the virtual machine: clients lose their connections for the time of a boot. The rest restarts nothing.",
		Attributes: map[string]schema.Attribute{
			"scrape_interval": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(defaultInterval),
				Validators:          []validator.String{text("a duration of Prometheus", checkInterval)},
				MarkdownDescription: "How often Prometheus reads, as a duration of Prometheus such as `15s` or `1m`, at most a day. Default `15s`. A change restarts nothing.",
			},
			"grafana_base_url": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("an http or https URL", checkGrafana)},
				MarkdownDescription: "Where Grafana is, for `grafana_url`: an http or https URL without user, query and fragment. Nothing is sent to it. A change restarts nothing.",
			},
			"allowed_cidrs": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Computed: true, Default: setdefault.StaticValue(setOf(everyNetwork())),
				Validators: []validator.Set{elements("a network", checkCIDR)},
				MarkdownDescription: "Networks from which the metrics may be read; the guest drops what comes from others. They are plain HTTP without a password. " +
					"Default: `0.0.0.0/0` and `::/0`. An empty set lets nobody read them." + restarts,
			},
		},
	}
}

// checkInterval accepts what Prometheus does, within reason.
func checkInterval(text string) error {
	parts := regexp.MustCompile(`^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$`).FindStringSubmatch(text)
	if parts == nil || text == "" {
		return fmt.Errorf("%q is not a duration of Prometheus such as 15s, 1m or 1m30s", text)
	}
	var sum time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond} {
		count, _ := strconv.Atoi(parts[i+1]) // digits, or nothing
		if time.Duration(count) > 24*time.Hour/unit {
			sum = 25 * time.Hour
			break
		}
		sum += time.Duration(count) * unit
	}
	if sum <= 0 || sum > 24*time.Hour {
		return fmt.Errorf("%q cannot be an interval; write one between 1ms and 1d", text)
	}
	return nil
}

// checkGrafana never quotes the URL, which may hold a password.
func checkGrafana(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("it is not an http or https URL such as https://grafana.example.com")
	case parsed.User != nil:
		return errors.New("it holds a user or a password, which everybody who sees the state would see; leave them out")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return errors.New("it has a query or a fragment; write only where Grafana begins, such as https://grafana.example.com/grafana")
	}
	return nil
}

// monitoring is the object monitoring.
type monitoring struct {
	ScrapeInterval types.String `tfsdk:"scrape_interval"`
	GrafanaBaseURL types.String `tfsdk:"grafana_base_url"`
	AllowedCIDRs   types.Set    `tfsdk:"allowed_cidrs"`
}

func monitoringTypes() map[string]attr.Type {
	all := stringTypes("scrape_interval", "grafana_base_url")
	all["allowed_cidrs"] = types.SetType{ElemType: types.StringType}
	return all
}

// monitoring is that of a settled model, nil for none.
func (m *model) monitoring(ctx context.Context) (*cloudinit.Monitoring, error) {
	if m.Monitoring.IsNull() {
		return nil, nil //nolint:nilnil // nil means that it is off
	}
	var wanted monitoring
	if diags := m.Monitoring.As(ctx, &wanted, basetypes.ObjectAsOptions{}); diags.HasError() {
		return nil, wrongType("monitoring", diags)
	}
	return &cloudinit.Monitoring{
		AllowedCIDRs: networks(wanted.AllowedCIDRs), ScrapeInterval: wanted.ScrapeInterval.ValueString(), GrafanaBaseURL: wanted.GrafanaBaseURL.ValueString(),
	}, nil
}

func monitoringOf(read *cloudinit.Monitoring) types.Object {
	if read == nil {
		return types.ObjectNull(monitoringTypes())
	}
	return types.ObjectValueMust(monitoringTypes(), map[string]attr.Value{
		"scrape_interval": presence(read.ScrapeInterval), "grafana_base_url": presence(read.GrafanaBaseURL), "allowed_cidrs": networksOf(read.AllowedCIDRs),
	})
}

// setGrafanaURL fills in where the dashboard shows the instance, as far as
// that is known.
func (m *model) setGrafanaURL() {
	base, written := m.Monitoring.Attributes()["grafana_base_url"].(types.String)
	switch {
	case m.Monitoring.IsUnknown() || written && base.IsUnknown():
		m.GrafanaURL = types.StringUnknown()
	case !written || base.IsNull():
		m.GrafanaURL = types.StringNull()
	case m.Namespace.IsUnknown() || m.Name.IsUnknown():
		m.GrafanaURL = types.StringUnknown()
	default:
		m.GrafanaURL = presence(grafanaURL(base.ValueString(), m.Namespace.ValueString(), m.Name.ValueString()))
	}
}

// grafanaURL is empty for a base that is no URL, which the argument's check refuses.
func grafanaURL(base, namespace, name string) string {
	at, err := url.Parse(base)
	if err != nil {
		return ""
	}
	at = at.JoinPath("d", dashboard)
	at.RawQuery = "var-namespace=" + url.QueryEscape(namespace) + "&var-instance=" + url.QueryEscape(name)
	return at.String()
}

// readersChange says whether the guest has to know of a change of monitoring.
func (u update) readersChange() bool {
	p, s := u.plan.Monitoring, u.state.Monitoring
	if p.IsUnknown() || p.IsNull() != s.IsNull() {
		return true
	}
	return !p.IsNull() && !p.Attributes()["allowed_cidrs"].Equal(s.Attributes()["allowed_cidrs"])
}

// settleMonitoring plans where the dashboard is, and the names of the objects
// that come or go.
func (u update) settleMonitoring() {
	u.plan.setGrafanaURL()
	p, s := u.plan.Monitoring, u.state.Monitoring
	switched := p.IsUnknown() || p.IsNull() != s.IsNull()
	if switched || !p.IsNull() && !u.state.published() && u.work() {
		u.plan.Resources = types.ObjectUnknown(resourcesTypes())
	}
}

// published says whether both objects that the state names stand.
func (m *model) published() bool {
	for _, name := range []string{"metrics_service_name", "service_monitor_name"} {
		if known, ok := m.Resources.Attributes()[name].(types.String); !ok || known.IsNull() {
			return false
		}
	}
	return true
}
