package knobs

import (
	"strconv"
	"time"
)

// Values are the knobs of one object. Values that Check refuses count as absent.
type Values map[string]string

// For picks an object's knobs: those of its annotations, else those of the
// ConfigMap's data for this object, else those of the data for all.
func For(data map[string]string, namespace, name string, annotations map[string]string) Values {
	v := Values{}
	for _, k := range Table() {
		for _, s := range []struct {
			from map[string]string
			key  string
		}{
			{annotations, AnnotationPrefix + k.Name},
			{data, namespace + "." + name + "." + k.Name},
			{data, k.Name},
		} {
			if value, ok := s.from[s.key]; ok && k.Check(value) == nil {
				v[k.Name] = value
				break
			}
		}
	}
	return v
}

// Objects returns the namespace/name pairs for which data sets a knob, whose
// object may have to be looked at because a setting went away or came.
func Objects(data map[string]string, knob string) [][2]string {
	var out [][2]string
	for key := range data {
		if ns, name, k := splitKey(key); k == knob && ns != "" {
			out = append(out, [2]string{ns, name})
		}
	}
	return out
}

// On says whether the knob is set.
func (v Values) On(name string) bool {
	_, ok := v[name]
	return ok
}

// Duration returns the knob's duration, 0 if it is not set.
func (v Values) Duration(name string) time.Duration {
	d, err := time.ParseDuration(v[name])
	if err != nil {
		return 0
	}
	return d
}

// Percent returns the knob's number and whether it is set.
func (v Values) Percent(name string) (int, bool) {
	n, err := strconv.Atoi(v[name])
	return n, err == nil
}

// Schedule returns the addresses over time, nil if the knob is not set.
func (v Values) Schedule() *Schedule {
	s, err := ParseSchedule(v[Addresses])
	if err != nil {
		return nil
	}
	return s
}
