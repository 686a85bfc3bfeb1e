package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/node"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// runKnob sets and removes knobs: NAME=VALUE and NAME-, for one object
// NAMESPACE.OBJECT.NAME=VALUE.
func runKnob(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("knob", flag.ContinueOnError)
	dir := flags.String("dir", ".lab", "the lab's folder")
	list := flags.Bool("list", false, "print every knob and its meaning")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		return printKnobs()
	}
	changes, err := parseChanges(flags.Args())
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.Dir(*dir).Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(knobs.ConfigMapNamespace)
	if len(changes) == 0 {
		m, err := maps.Get(ctx, knobs.ConfigMapName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the knobs: %w", err)
		}
		for key, value := range m.Data {
			fmt.Printf("%s=%s\n", key, value)
		}
		return nil
	}
	patch, err := json.Marshal(map[string]any{"data": changes})
	if err != nil {
		return err
	}
	if _, err := maps.Patch(ctx, knobs.ConfigMapName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("set the knobs: %w", err)
	}
	return nil
}

// parseChanges reads NAME=VALUE and NAME-; a nil value removes.
func parseChanges(args []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		if set {
			if err := knobs.CheckKey(key, value); err != nil {
				return nil, err
			}
			changes[key] = &value
			continue
		}
		key, remove := strings.CutSuffix(arg, "-")
		if !remove {
			return nil, fmt.Errorf("set a knob: %q is neither NAME=VALUE nor NAME-", arg)
		}
		changes[key] = nil
	}
	return changes, nil
}

func printKnobs() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KNOB\tON\tVALUE\tMEANING")
	for _, k := range knobs.Table() {
		value := string(k.Type)
		if len(k.Words) > 0 {
			value = strings.Join(k.Words, "|")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.On, value, k.Meaning)
	}
	return w.Flush()
}

// toMachine makes the command that does something to NAMESPACE/NAME now.
func toMachine(do string) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		flags := flag.NewFlagSet(do, flag.ContinueOnError)
		dir := flags.String("dir", ".lab", "the lab's folder")
		if err := flags.Parse(args); err != nil {
			return err
		}
		rest := flags.Args()
		if want := map[bool]int{false: 1, true: 2}[do == "address"]; len(rest) != want {
			return errors.New("say which one: NAMESPACE/NAME" + map[bool]string{true: " ADDRESS"}[do == "address"])
		}
		namespace, name, ok := strings.Cut(rest[0], "/")
		if !ok {
			return fmt.Errorf("find %q: it is not NAMESPACE/NAME", rest[0])
		}
		c := node.Command{Do: do, Namespace: namespace, Name: name}
		if do == "address" {
			c.Address = rest[1]
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return node.Send(ctx, state.Dir(*dir), c)
	}
}
