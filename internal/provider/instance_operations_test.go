package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestStateKeepsWhatThePlanPromised(t *testing.T) {
	pair := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String, "reason": tftypes.String}}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"status": tftypes.String, "address": tftypes.String, "secret": pair}}
	text := func(s any) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	of := func(status, address, reason any) tftypes.Value {
		secret := tftypes.NewValue(pair, map[string]tftypes.Value{"name": text("s"), "reason": text(reason)})
		return tftypes.NewValue(typ, map[string]tftypes.Value{"status": text(status), "address": text(address), "secret": secret})
	}
	unknown := tftypes.UnknownValue
	for story, test := range map[string]struct{ plan, read, want tftypes.Value }{
		"unknown is what was read": {of(unknown, unknown, unknown), of("available", "a", "r"), of("available", "a", "r")},
		"known is kept":            {of("available", nil, "r"), of("degraded", "a", nil), of("available", nil, "r")},
		"an object partly unknown": {of("available", "a", unknown), of("available", "b", "read"), of("available", "a", "read")},
	} {
		t.Run(story, func(t *testing.T) {
			got, err := promised(test.plan, test.read)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
