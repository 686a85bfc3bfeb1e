package guest

import (
	"encoding/json"
	"io"
	"net/netip"
)

// Options are what a Backend that boots something is made with.
type Options struct {
	// Dir is the lab's folder; volumes and guests live below it.
	Dir string
	// Cache is the lab's cache folder, with the image and unpacked packages.
	Cache string
	// Network is the number of a network that was claimed.
	Network int
	// Image is the image's variant, plain or baked; empty means baked.
	Image string
	// PackageProxy is where a guest's apt finds packages, or invalid for none.
	PackageProxy netip.AddrPort
	// Log receives lines of progress.
	Log io.Writer
}

// MetaData is the NoCloud meta-data file.
func (s *Seed) MetaData() []byte {
	b, err := json.Marshal(map[string]string{"instance-id": s.InstanceID, "local-hostname": s.Hostname})
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return append(b, '\n')
}

// BootArgument is what tells the guest image where its apt finds packages.
func (o Options) BootArgument() string {
	if !o.PackageProxy.IsValid() {
		return ""
	}
	return "lab.proxy=http://" + o.PackageProxy.String()
}
