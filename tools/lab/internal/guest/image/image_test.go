package image

import "testing"

func TestParseVariant(t *testing.T) {
	for text, want := range map[string]Variant{"": Baked, "baked": Baked, "plain": Plain} {
		if got, err := ParseVariant(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if got, err := ParseVariant("bare"); err == nil {
		t.Errorf("bare: got %q", got)
	}
}
