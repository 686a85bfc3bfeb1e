package class_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
)

func TestDefaultIsTheOperatorsTable(t *testing.T) {
	want := class.Catalogue{
		"db.t3.micro": {1, 1024, 50}, "db.t3.small": {1, 2048, 100}, "db.t3.medium": {2, 4096, 150},
		"db.t3.large": {2, 8192, 200}, "db.t3.xlarge": {4, 16384, 300},
		"db.m5.large": {2, 8192, 200}, "db.m5.xlarge": {4, 16384, 400}, "db.m5.2xlarge": {8, 32768, 600}, "db.m5.4xlarge": {16, 65536, 1000},
		"db.r5.large": {2, 16384, 300}, "db.r5.xlarge": {4, 32768, 500}, "db.r5.2xlarge": {8, 65536, 800},
	}
	if diff := cmp.Diff(want, class.Default()); diff != "" {
		t.Error(diff)
	}
}

func TestEveryDefaultClassCouldHaveBeenAdded(t *testing.T) {
	if _, err := (class.Catalogue{}).With(class.Default()); err != nil {
		t.Error(err)
	}
}

func TestWithAddsAndLeavesTheOriginalAlone(t *testing.T) {
	original := class.Default()
	got, err := original.With(class.Catalogue{"db.lab.tiny": {1, 768, 20}})
	if err != nil {
		t.Fatal(err)
	}
	want := class.Default()
	want["db.lab.tiny"] = class.Class{VCPU: 1, MemoryMiB: 768, MaxConnections: 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(class.Default(), original); diff != "" {
		t.Error("With changed its receiver:", diff)
	}
}

func TestWithRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		added class.Catalogue
		want  []string
	}{
		"a redefinition":       {class.Catalogue{"db.t3.micro": {1, 1024, 50}}, []string{`"db.t3.micro"`, "not redefined"}},
		"no cpu":               {class.Catalogue{"x": {0, 1024, 50}}, []string{`"x"`, "cpu is 0"}},
		"too little memory":    {class.Catalogue{"x": {1, 511, 50}}, []string{`"x"`, "memory_mib is 511"}},
		"too few connections":  {class.Catalogue{"x": {1, 1024, 9}}, []string{`"x"`, "max_connections is 9"}},
		"too many connections": {class.Catalogue{"x": {1, 1024, 262144}}, []string{`"x"`, "max_connections is 262144"}},
		"no name":              {class.Catalogue{"": {1, 1024, 50}}, []string{`""`, "empty"}},
		"blanks around a name": {class.Catalogue{" x": {1, 1024, 50}}, []string{`" x"`, "blanks"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := class.Default().With(test.added)
			if err == nil {
				t.Fatalf("accepted: %v", got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestLookup(t *testing.T) {
	catalogue := class.Catalogue{"b": {2, 2048, 20}, "a": {1, 1024, 10}}
	got, err := catalogue.Lookup("b")
	if diff := cmp.Diff(class.Class{VCPU: 2, MemoryMiB: 2048, MaxConnections: 20}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err = catalogue.Lookup("c")
	if err == nil || err.Error() != `look up class "c": unknown; known are a, b` {
		t.Errorf("got error %v", err)
	}
}
