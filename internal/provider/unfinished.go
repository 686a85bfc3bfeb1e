package provider

import "slices"

// What an earlier apply left to do, as far as status and reason tell.

// workLeft says whether an earlier apply left something that an update has to
// finish: a bootstrap secret that still stands in the guest's document, a
// restart, a lost machine, metrics that are looked for elsewhere, or a wait that
// ended before the instance served.
func workLeft(status, reason string) bool {
	if slices.Contains([]string{"BootstrapMaterialPresent", "VMMissing", "PendingRestart", "MetricsAddressStale"}, reason) {
		return true
	}
	if reason == "PasswordRotationPending" {
		return status != "stopped" // it ends with the next start
	}
	impossible := []string{"OperatorManaged", "DataVolumeReplaced"}
	return slices.Contains([]string{"creating", "failed"}, status) && !slices.Contains(impossible, reason)
}

// bootless says whether work of this reason is done without a boot.
func bootless(reason string) bool {
	return slices.Contains([]string{"BootstrapMaterialPresent", "MetricsAddressStale"}, reason)
}

// served says whether an instance of this status was available at some time.
// Of a failed one it does not tell.
func served(status string) bool {
	return slices.Contains([]string{"available", "degraded", "modifying", "stopping", "stopped", "starting", "deleting"}, status)
}
