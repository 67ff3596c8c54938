// Command kstatus reads a JSON array of Kubernetes objects and prints what kstatus, which Flux and cli-utils use, makes
// of each: a JSON array of statuses.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json" // integers as the API machinery has them
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Version is that of cli-utils; set at link time.
var Version = "unknown"

func main() {
	log.SetFlags(0)
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Println("kstatus", Version)
		return
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatalf("reading objects: %v", err)
	}
	var objects []any
	if err := utiljson.Unmarshal(input, &objects); err != nil {
		log.Fatalf("reading objects: %v", err)
	}
	statuses := make([]string, len(objects))
	for i, object := range objects {
		fields, _ := object.(map[string]any)
		result, err := status.Compute(&unstructured.Unstructured{Object: fields})
		if err != nil {
			log.Fatalf("object %d: %v", i, err)
		}
		statuses[i] = result.Status.String()
	}
	if err := json.NewEncoder(os.Stdout).Encode(statuses); err != nil {
		log.Fatal(err)
	}
}
