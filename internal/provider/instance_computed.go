package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func instanceComputed() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":          computed("`namespace/name` of the instance. Known only once the instance was created, so what depends on it waits."),
		"instance_id": computed("Random UUID drawn when the instance was first created; also the UUID of its data file system. Nothing that carries another one is ever changed or deleted."),
		"owner_id":    computed("Random UUID of the create that this state stands for. An instance that another create took over is left alone."),
		"status": computed("`creating`, `available`, `modifying`, `stopping`, `stopped`, `starting`, `degraded` (was available and does not serve now), " +
			"`failed` (cannot become available) or `deleting`."),
		"status_reason": computed("Why `status` is not simply `available`, or what work is left; null when there is nothing to say. One of " +
			"`ImageImporting`, `ImageFailed`, `StorageProvisioning`, `ClaimPending`, `Scheduling`, `Unschedulable`, `QuotaExceeded`, `Booting`, `NoAddress`, " +
			"`ConfiguringDatabase`, `GuestFailed`, `CrashLoop`, `NotReady`, `PendingRestart`, `PasswordRotationPending`, `BootstrapMaterialPresent`, " +
			"`MetricsAddressStale`, `CredentialsMissing`, `DataVolumeReplaced`, `VMMissing`, `OperatorManaged`. " +
			"Work that is left, such as `BootstrapMaterialPresent`, is planned as an update in place, which finishes it."),
		"address":  computed("IP address of the instance on its network. While the instance is stopped: the last one."),
		"endpoint": computed("`address:port`, an IPv6 address in brackets."),
		"connection_uri": computed("`postgresql://` URI of the database with user and `sslmode=verify-full`, without the password. " +
			"The client also needs `ca_cert_pem` as its root certificate."),
		"jdbc_url":       computed("`jdbc:postgresql://` URL of the database with `ssl=true` and `sslmode=verify-full`, without user and password."),
		"ca_cert_pem":    computed("Certificate, PEM, of the instance's own certificate authority, which signs the server's certificate: the root certificate for `sslmode=verify-full`."),
		"ca_valid_until": computed("When the certificate authority ends, RFC 3339, UTC."),
		"master_password": schema.StringAttribute{
			Computed: true, Sensitive: true,
			MarkdownDescription: "The generated master password. Null with `manage_master_user_password = true`: then it is only in the Secret that `master_user_secret` names.",
		},
		"master_user_secret": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "The Secret that holds user (`admin_user`), password (`admin_password`), CA (`ca_cert`) and connection of the instance.",
			Attributes: map[string]schema.Attribute{
				"name":      computed("Name of the Secret."),
				"namespace": computed("Namespace of the Secret."),
				"status":    computed("`active`, or `impaired` when the Secret or its password was removed after the instance became available."),
				"reason":    computed("What is missing from an impaired Secret; null when it is active."),
			},
		},
		"vcpu":                  schema.Int64Attribute{Computed: true, MarkdownDescription: "Virtual CPUs of the instance."},
		"memory_mib":            schema.Int64Attribute{Computed: true, MarkdownDescription: "Memory of the instance in MiB (2²⁰ bytes)."},
		"max_connections":       schema.Int64Attribute{Computed: true, MarkdownDescription: "PostgreSQL's `max_connections`, which the class sets."},
		"engine_version_actual": computed("Major version of PostgreSQL that the guest became ready with; null until it was ready once."),
		"tags_all":              schema.MapAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "All tags of the instance: the provider's `default_tags` and `tags`."},
		"grafana_url":           computed("Where the dashboard of [the guide](../guides/monitoring.md) shows this instance; null without `monitoring.grafana_base_url`. Nobody has looked whether Grafana has the dashboard."),
		"resources": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "Names of the objects on the cluster, in the instance's namespace.",
			Attributes: map[string]schema.Attribute{
				"vm_name":                 computed("The VirtualMachine, and the VirtualMachineInstance while it runs."),
				"os_volume_name":          computed("The OS disk's PersistentVolumeClaim."),
				"data_volume_name":        computed("The data disk's PersistentVolumeClaim."),
				"credentials_secret_name": computed("The Secret with the credentials."),
				"cloudinit_secret_name":   computed("The Secret with the guest's configuration."),
				"metrics_service_name":    computed("The Service of the metrics exporter, and the Endpoints of that name; null while there is none."),
				"service_monitor_name":    computed("The ServiceMonitor; null while there is none."),
			},
		},
	}
}

// computed is a read-only string.
func computed(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
