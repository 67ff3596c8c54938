// Command kubectl-read reads a JSON array of files in Base64 and prints what kubectl reads in each: a JSON array of the
// objects, lists flattened, and of errors. It calls what kubectl calls: the Visitors of k8s.io/cli-runtime, without a cluster.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Version is that of apimachinery; set at link time.
var Version = "unknown"

// File is what kubectl makes of one file.
type File struct {
	Objects []runtime.Object `json:"objects"`
	Errors  []string         `json:"errors,omitempty"`
}

func main() {
	log.SetFlags(0)
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Println("kubectl-read", Version)
		return
	}
	var contents [][]byte
	if err := json.NewDecoder(os.Stdin).Decode(&contents); err != nil {
		log.Fatalf("reading files: %v", err)
	}
	files := make([]File, len(contents))
	for i, content := range contents {
		files[i] = read(content)
	}
	if err := json.NewEncoder(os.Stdout).Encode(files); err != nil {
		log.Fatal(err)
	}
}

// read does what FileVisitor, StreamVisitor and FlattenListVisitor do.
func read(content []byte) File {
	file := File{Objects: []runtime.Object{}}
	decoded := transform.NewReader(bytes.NewReader(content), unicode.BOMOverride(unicode.UTF8.NewDecoder()))
	decoder := yaml.NewYAMLOrJSONDecoder(decoded, 4096)
	for {
		raw := runtime.RawExtension{}
		if err := decoder.Decode(&raw); err != nil {
			if !errors.Is(err, io.EOF) {
				file.Errors = append(file.Errors, err.Error()) // the rest of the file is not read
			}
			return file
		}
		document := bytes.TrimSpace(raw.Raw)
		if len(document) == 0 || bytes.Equal(document, []byte("null")) {
			continue
		}
		object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, document)
		if err == nil {
			err = flatten(&file, object)
		}
		if err != nil {
			file.Errors = append(file.Errors, err.Error())
		}
	}
}

func flatten(file *File, object runtime.Object) error {
	if !meta.IsListType(object) {
		file.Objects = append(file.Objects, object)
		return nil
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := flatten(file, item); err != nil {
			return err
		}
	}
	return nil
}
