package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/faults"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// runFaults tells the fault proxy what to do, or prints what it recorded.
func runFaults(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	dir := flags.String("dir", ".lab", "the lab's folder")
	asJSON := flags.Bool("json", false, "print the record as JSON")
	reset := flags.Bool("reset", false, "forget rules, record and snapshots")
	clearing := flags.Bool("clear", false, "remove the rules and keep the record")
	mark := flags.Bool("mark", false, `make the last answers those of {"action":"stale","snapshot":"marked"}`)
	inject := flags.String("inject", "", `arm a rule, such as {"method":"POST","path":"/secrets","action":"answer","status":503}`)
	if err := flags.Parse(args); err != nil {
		return err
	}
	lab, err := state.Dir(*dir).Load()
	if err != nil {
		return err
	}
	c := faults.Client{URL: "http://" + loopback(lab.Ports["proxy-control"])}
	// All that were asked for, in the order that is of use.
	acted := false
	for _, step := range []struct {
		asked bool
		do    func(context.Context) error
	}{
		{*reset, c.Reset},
		{*clearing, c.Clear},
		{*mark, c.Mark},
		{*inject != "", func(ctx context.Context) error { return injectJSON(ctx, c, *inject) }},
	} {
		if !step.asked {
			continue
		}
		acted = true
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	if acted {
		return nil
	}
	record, err := c.Record(ctx)
	if err != nil {
		return err
	}
	return printRecord(os.Stdout, record, *asJSON)
}

func injectJSON(ctx context.Context, c faults.Client, text string) error {
	rule, err := faults.ParseRule(strings.NewReader(text))
	if err != nil {
		return err
	}
	return c.Inject(ctx, rule)
}

func printRecord(w io.Writer, record faults.Record, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(record)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#\ttime\tmethod\tstatus\tserver\tin\tout\ttook\tfault\tpath")
	for _, e := range record {
		what := e.Fault
		if e.Error != "" {
			what = strings.TrimPrefix(what+": "+e.Error, ": ")
		}
		took := time.Duration(e.Duration).Round(time.Millisecond / 10).String()
		if e.Open {
			took = "open"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", e.Index, e.Time.Format("15:04:05.000"), e.Method,
			code(e.Status), code(e.Upstream), e.BytesIn, e.BytesOut, took, what, e.Path)
	}
	return t.Flush()
}

func code(status int) string {
	if status == 0 {
		return "-"
	}
	return fmt.Sprint(status)
}
