package instance

import "testing"

func TestEveryFindingHasATitle(t *testing.T) {
	titles := map[string]Field{}
	for _, field := range []Field{
		FieldName, FieldNamespace, FieldClass, FieldStorage, FieldNetwork, FieldEngine, FieldDatabase, FieldUser, FieldPort, FieldImage,
		FieldStorageType, FieldStaticNetwork, FieldParameters, FieldExtensions, FieldAllowedCIDRs, FieldDNSNames, FieldSSHPublicKeys,
		FieldMonitoring, FieldPassword, FieldProtection,
	} {
		if summary(field) == "" {
			t.Errorf("a finding about %s has no title", field)
		}
		titles[summary(field)] = field
	}
	if len(titles) < 7 {
		t.Errorf("titles do not tell what is wrong: %v", titles)
	}
}
