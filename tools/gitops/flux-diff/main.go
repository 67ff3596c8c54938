// flux-diff tells which objects of a cluster Flux takes for different from their manifests, by Flux' own code. It reads a JSON
// list of manifests, and prints a line for each difference.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version is that of Flux' module ssa; set at link time.
var Version = "unknown"

func main() {
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Println("flux-diff", Version)
		return
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	var manifests []*unstructured.Unstructured
	if err := json.NewDecoder(os.Stdin).Decode(&manifests); err != nil {
		return err
	}
	flux := ssa.NewResourceManager(cluster, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	for _, manifest := range manifests {
		name := utils.FmtUnstructured(manifest)
		change, _, _, err := flux.Diff(ctx, manifest.DeepCopy(), ssa.DefaultDiffOptions())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if change.Action != ssa.UnchangedAction {
			fmt.Println(name, change.Action)
		}
	}
	return nil
}
