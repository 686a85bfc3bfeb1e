package faulttest

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// signature names a request so that the same one is found again on another
// instance, whatever came before it at the same time.
type signature struct {
	Method string
	// Path has {name} for the instance's name and {pod} for a launcher's.
	Path string
	// Selector is the query's field or label selector.
	Selector string
}

func signatureOf(r request, name string) signature {
	path, query, _ := strings.Cut(r.Path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		panic(err) // client-go wrote it
	}
	general := func(text string) string {
		text = regexp.MustCompile(`virt-launcher-pg-`+name+`-[a-z0-9]+`).ReplaceAllString(text, "{pod}")
		return strings.ReplaceAll(text, name, "{name}")
	}
	return signature{r.Method, general(path), general(values.Get("fieldSelector") + values.Get("labelSelector"))}
}

// pattern finds the request's path and query for an instance.
func (s signature) pattern(name string) string {
	particular := func(text string, escape func(string) string) string {
		text = strings.NewReplacer("{name}", name, "{pod}", "POD").Replace(text)
		return strings.ReplaceAll(regexp.QuoteMeta(escape(text)), "POD", "virt-launcher-pg-"+name+"-[a-z0-9]+")
	}
	path := "^" + particular(s.Path, func(text string) string { return text })
	if s.Selector == "" {
		return path + `(\?|$)`
	}
	return path + `\?(.*&)?(field|label)Selector=` + particular(s.Selector, url.QueryEscape) + "(&|$)"
}

// String is short: what is asked of what.
func (s signature) String() string {
	path := regexp.MustCompile(`^/(api|apis/[^/]+)/[^/]+/(namespaces/[^/]+/)?`).ReplaceAllString(s.Path, "")
	if s.Selector != "" {
		path += "?" + s.Selector
	}
	return s.Method + " " + path
}

// cell is one request of one operation, disturbed in one way.
type cell struct {
	operation operation
	fault     fault
	request   signature
	nth       int
	// snapshot is which old answer a stale one repeats.
	snapshot string
	// usual is how long the operation takes undisturbed.
	usual time.Duration
}

// String identifies the cell, from run to run.
func (c cell) String() string {
	return fmt.Sprintf("%s/%s/%s#%d", c.operation.name, c.fault.name, c.request, c.nth)
}

// during is the configuration with which the operation is disturbed: an outage
// that lasts is to end by the operation's deadline, after it was met.
func (c cell) during(config args) args {
	if !c.fault.lasting {
		return config
	}
	limits := args{}
	for name := range config["timeouts"].(args) {
		limits[name] = (2*c.usual + 8*time.Second).Round(time.Second).String()
	}
	return config.with(args{"timeouts": limits})
}

func (c cell) rule(name string) rule {
	r := c.fault.rule
	if r.Snapshot = c.snapshot; c.snapshot == "first" {
		r.Nth = c.nth - 1 // the first one has no answer to repeat, and does not count
	} else {
		r.Nth = c.nth
	}
	r.Method, r.Path = c.request.Method, c.request.pattern(name)
	return r
}

// cellsOf makes the cells of an operation from the record of an undisturbed
// run, of which the operation itself is what came after the mark.
func cellsOf(o operation, record []request, mark int, name string) []cell {
	before, during := map[signature]int{}, map[signature]int{}
	var all []cell
	var usual time.Duration
	for _, r := range record {
		s := signatureOf(r, name)
		if r.Index <= mark {
			before[s]++
			continue
		}
		during[s]++
		usual = r.Time.Sub(record[0].Time)
		for _, f := range faults() {
			c := cell{operation: o, fault: f, request: s, nth: during[s]}
			if f.rule.Action == "stale" {
				switch {
				case before[s] > 0:
					c.snapshot = "marked"
				case during[s] > 1:
					c.snapshot = "first"
				default:
					continue // no older answer
				}
			}
			if f.on(r.Method) && f.of(o) {
				all = append(all, c)
			}
		}
	}
	for i := range all {
		all[i].usual = usual
	}
	return all
}
