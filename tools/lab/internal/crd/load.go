package crd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	cdi "kubevirt.io/containerized-data-importer/pkg/operator/resources"
	kubevirt "kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

// load reads the definitions of KubeVirt, of CDI and of the files, each once.
func load(paths []string) ([]*extv1.CustomResourceDefinition, error) {
	all, err := fromKubeVirt()
	if err != nil {
		return nil, err
	}
	for name, text := range cdi.CDICRDs {
		more, err := parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("parse CDI's %s: %w", name, err)
		}
		all = append(all, more...)
	}
	files, err := yamlFiles(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read definitions: %w", err)
		}
		more, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		all = append(all, more...)
	}
	own, err := parse(ours)
	if err != nil {
		return nil, fmt.Errorf("parse the lab's own definitions: %w", err)
	}
	all = append(append(all, own...), opaque()...)
	// Harvester's chart carries one of KubeVirt's definitions as well.
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(d *extv1.CustomResourceDefinition) bool {
		again := seen[d.Name]
		seen[d.Name] = true
		return again
	})
	for _, d := range all {
		adapt(d)
	}
	return all, nil
}

func fromKubeVirt() ([]*extv1.CustomResourceDefinition, error) {
	var all []*extv1.CustomResourceDefinition
	for _, definition := range []func() (*extv1.CustomResourceDefinition, error){
		kubevirt.NewVirtualMachineInstanceCrd, kubevirt.NewVirtualMachineCrd, kubevirt.NewPresetCrd,
		kubevirt.NewReplicaSetCrd, kubevirt.NewVirtualMachineInstanceMigrationCrd, kubevirt.NewKubeVirtCrd,
		kubevirt.NewVirtualMachinePoolCrd, kubevirt.NewVirtualMachineSnapshotCrd, kubevirt.NewVirtualMachineSnapshotContentCrd,
		kubevirt.NewVirtualMachineRestoreCrd, kubevirt.NewVirtualMachineExportCrd, kubevirt.NewVirtualMachineInstancetypeCrd,
		kubevirt.NewVirtualMachineClusterInstancetypeCrd, kubevirt.NewVirtualMachinePreferenceCrd,
		kubevirt.NewVirtualMachineClusterPreferenceCrd, kubevirt.NewMigrationPolicyCrd, kubevirt.NewVirtualMachineCloneCrd,
	} {
		d, err := definition()
		if err != nil {
			return nil, fmt.Errorf("make KubeVirt's definitions: %w", err)
		}
		all = append(all, d)
	}
	return all, nil
}

// yamlFiles resolves folders to the YAML files in them, in order.
func yamlFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read definitions: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(path, "*.yaml"))
		if err != nil {
			return nil, err
		}
		files = append(files, inside...)
	}
	return files, nil
}

// parse decodes a YAML stream and keeps what is a definition. Longhorn's file is
// a chart's template, though only in lines that add labels: those are left out.
func parse(text []byte) ([]*extv1.CustomResourceDefinition, error) {
	var plain bytes.Buffer
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte("{{- include")) {
			plain.Write(line)
		}
	}
	var all []*extv1.CustomResourceDefinition
	stream := yaml.NewYAMLOrJSONDecoder(&plain, 4096)
	for {
		d := new(extv1.CustomResourceDefinition)
		if err := stream.Decode(d); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if d.Kind == "CustomResourceDefinition" {
			all = append(all, d)
		}
	}
}

// adapt makes a definition fit for the lab.
func adapt(d *extv1.CustomResourceDefinition) {
	d.Status = extv1.CustomResourceDefinitionStatus{}
	if strings.HasSuffix(d.Spec.Group, ".k8s.io") {
		// The API server wants to know who approved a definition in this group.
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		if d.Annotations["api-approved.kubernetes.io"] == "" {
			d.Annotations["api-approved.kubernetes.io"] = "unapproved, for a lab"
		}
	}
	for i := range d.Spec.Versions {
		if schema := d.Spec.Versions[i].Schema; schema != nil {
			describeNothing(schema.OpenAPIV3Schema)
			if d.Name == "backingimages.longhorn.io" {
				allowEmptyEngine(schema.OpenAPIV3Schema)
			}
		}
	}
}

// describeNothing drops the descriptions: nobody reads them in a lab, and
// without them the API server starts seconds earlier.
func describeNothing(s *extv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description, s.Example = "", nil
	for name, property := range s.Properties {
		describeNothing(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		describeNothing(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		describeNothing(s.AdditionalProperties.Schema)
	}
}

// allowEmptyEngine accepts what Harvester's image controller writes: an empty
// dataEngine, which on a cluster Longhorn's own webhook fills in.
func allowEmptyEngine(s *extv1.JSONSchemaProps) {
	spec := s.Properties["spec"]
	engine := spec.Properties["dataEngine"]
	engine.Enum = nil
	spec.Properties["dataEngine"] = engine
}
