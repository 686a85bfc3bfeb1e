// Command bench measures what the provider adds to what Terraform and the
// cluster need anyway, on a running lab with simulated guests. Every bar is a
// ratio to a floor that is measured in the same run, or a count: machines
// differ, and are noisy.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// result is one measurement. A ratio's Floor and Bar are in the unit of Value,
// with Bar = how many floors are allowed × Floor.
type result struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Floor float64 `json:"floor,omitempty"`
	Bar   float64 `json:"bar"`
	Met   bool    `json:"met"`
}

func measured(what, unit string, value, floor, bar float64) result {
	return result{What: what, Unit: unit, Value: value, Floor: floor, Bar: bar, Met: value <= bar}
}

// bench is what all measurements need.
type bench struct {
	lab       *lab
	dir       string // for Terraform's folders and the programs
	terraform string
	provider  string // the program, stripped
	sizes     []int
	trips     []time.Duration
	repeat    int
	creates   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	dir := flags.String("lab", ".lab-bench", "the lab's folder")
	terraform := flags.String("terraform", "terraform", "the terraform or tofu to plan with")
	sizes := flags.String("sizes", "1,10,100,1000", "how many instances to plan")
	trips := flags.String("trips", "0s,5ms,50ms", "how much longer each request takes")
	only := flags.String("only", "start,create,plan", "which measurements")
	out := flags.String("json", "bench.json", "where the results go as JSON")
	b := &bench{}
	flags.IntVar(&b.repeat, "repeat", 3, "how often a plan is measured; the median counts")
	flags.IntVar(&b.creates, "creates", 50, "how many creates are measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if b.sizes, err = each(*sizes, strconv.Atoi); err != nil {
		return err
	}
	if b.trips, err = each(*trips, time.ParseDuration); err != nil {
		return err
	}
	if b.terraform, err = exec.LookPath(*terraform); err != nil {
		return err
	}
	if b.lab, err = openLab(*dir); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "dbaas-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.provider, err = b.compile(ctx, "terraform-provider-dbaas", "."); err != nil {
		return err
	}
	var all []result
	for part := range strings.SplitSeq(*only, ",") {
		measure, ok := map[string]func(context.Context) ([]result, error){"start": b.start, "create": b.create, "plan": b.plan}[part]
		if !ok {
			return fmt.Errorf("-only: there is no measurement %q", part)
		}
		results, err := measure(ctx)
		all = append(all, results...)
		if err != nil {
			return fmt.Errorf("measure %s: %w", part, err)
		}
	}
	return report(all, *out)
}

func each[T any](list string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for text := range strings.SplitSeq(list, ",") {
		value, err := parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// compile builds a program of this repository as a release is built.
func (b *bench) compile(ctx context.Context, name, source string) (string, error) {
	program := filepath.Join(b.dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", source, err, text)
	}
	return program, nil
}

// report prints a table, writes JSON, and fails if a bar was missed.
func report(all []result, file string) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what\tvalue\tfloor\tratio\tbar\t\t")
	missed := 0
	for _, r := range all {
		floor, ratio := "", ""
		if r.Floor > 0 {
			floor, ratio = fmt.Sprintf("%.4g", r.Floor), fmt.Sprintf("%.2f", r.Value/r.Floor)
		}
		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(table, "%s\t%.4g %s\t%s\t%s\t%.4g\t%s\t\n", r.What, r.Value, r.Unit, floor, ratio, r.Bar, verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bars are missed", missed, len(all))
	}
	return nil
}

// median of some numbers, the upper one of two in the middle.
func median[T int | int64 | float64 | time.Duration](of []T) T {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
